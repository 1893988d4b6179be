"""Splits: by content, from folders, and draws of subsets."""
