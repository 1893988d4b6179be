"""Suites of published tasks, one per file: readers of their official files, and formats of submissions."""
