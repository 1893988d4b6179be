"""Checks of the data report: duplicates, leaks and cues in the splits."""
