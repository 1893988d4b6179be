"""Targets and predictions of kinds, encoded and decoded: labels, tags, spans, passages, choices and ranks."""
