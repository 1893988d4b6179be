"""Scores of a finished module on labelled files, and the distance of new texts from its training data."""
