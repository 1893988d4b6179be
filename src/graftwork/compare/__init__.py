"""Comparisons: grids of runs, the statistics of their differences, the Pareto frontier, and the reports."""
