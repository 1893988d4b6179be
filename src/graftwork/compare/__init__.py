"""Grids of runs, the statistics that say which differences are real, the frontier, and the report."""
