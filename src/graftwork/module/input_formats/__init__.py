"""Forms of input, one a file."""
