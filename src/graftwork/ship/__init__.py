"""Shipping of a task module: compression that keeps its score, export to other formats, and its price at scale."""
