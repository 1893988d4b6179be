"""Scores of a finished module on labelled files, and domain shift of new texts from its training data."""
