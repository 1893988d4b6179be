"""One file per cost; the file's name is the cost's name, and its unit is in it."""
