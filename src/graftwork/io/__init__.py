"""Files: reading, writing, locks and limits, independent of models and data."""
