"""Receipts of finished runs: verified, compared and turned into a checklist for papers."""
