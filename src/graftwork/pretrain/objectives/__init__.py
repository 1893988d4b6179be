"""Objectives: one file each, registered by name."""
