"""A bank served over HTTP: limits, a queue that batches across requests, and a page to try its tasks."""
