"""The data report: repeats, leaks and cues in the splits."""
