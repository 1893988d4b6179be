"""The one place where task, backbone, method, recipe and seed meet; the store of runs; receipts and price tags."""
