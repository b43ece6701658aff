"""Figures and tables of papers as files: their runs, their formulas, their published numbers, and the verdicts."""
