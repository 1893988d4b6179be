"""Metrics, one per file; the file's name is the metric's name."""
