"""Exporters: one file each, registered by name."""
