"""Tokenizers, one file each: how text is cut into tokens, and how that is learnt from a corpus."""
