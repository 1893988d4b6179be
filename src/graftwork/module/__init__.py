"""The task module: saving, loading, and prediction from Python, files and clients."""
