"""Runs and comparisons: their requests, settings and assumptions."""
