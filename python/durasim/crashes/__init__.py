"""Crash campaigns: their requests, runs, planted faults and reductions."""
