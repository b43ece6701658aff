"""Artifacts: results of a study or of figures of papers, packed with all that simulates them again without network."""
