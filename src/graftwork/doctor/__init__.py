"""Checks of this machine for what will fail or be slow: one small check per file."""
