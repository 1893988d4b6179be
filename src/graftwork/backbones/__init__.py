"""One file per family of backbones; the file's name is the registered name."""
