"""Files: reading, writing, locks and limits. Nothing here knows of models or data."""
