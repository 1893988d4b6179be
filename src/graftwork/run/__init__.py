"""Execution of a run from task, backbone, method, recipe and seed; the store of runs; receipts and price tags."""
