"""What this machine has, what will fail on it, and what will be slow: one small check per file."""
