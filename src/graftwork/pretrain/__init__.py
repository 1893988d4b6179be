"""Pre-training: corpora, tokenizers, objectives and the loop that turns text into a backbone."""
