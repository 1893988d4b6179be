"""A bank over HTTP: limits, a queue that batches across requests, and the page to try its tasks."""
