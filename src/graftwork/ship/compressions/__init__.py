"""Compressions: one file each, registered by name."""
