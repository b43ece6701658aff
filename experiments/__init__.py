"""Experiments of the papers, compared with their published numbers by `tools/published.py`."""
