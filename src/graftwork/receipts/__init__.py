"""Receipts of finished runs: verification, comparison and a checklist for papers."""
