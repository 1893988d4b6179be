"""Suites of published tasks, one per file: how their official files are read, and what is handed in."""
