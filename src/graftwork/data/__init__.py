"""Data loading: strict readers, splits, checks, and batches of near-equal lengths."""
