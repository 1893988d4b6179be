"""Input formats, one per file."""
