"""Receipts (records of all that decides and describes a run): verification, comparison, a checklist for papers."""
