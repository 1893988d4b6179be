"""Task kinds, one per file; the file's name is the kind's name."""
