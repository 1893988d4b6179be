"""Splits: by content, from folders, and draws of fewer rows."""
