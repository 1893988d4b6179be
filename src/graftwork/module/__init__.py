"""The task module: saved, opened, asked in Python, from files and by clients."""
