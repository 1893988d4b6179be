"""Meters of costs, one per file; the file's name is the cost's name, which includes its unit."""
