"""Tokenizers and their training on a corpus, one file each."""
