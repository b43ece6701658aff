"""Studies: axes, points, their simulation, plots and frontiers."""
