"""What kinds predict: labels, tags, spans, passages, choices and ranks, as numbers and back."""
