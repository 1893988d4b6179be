"""Metrics for Prometheus, served at `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


class Measures:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._ours: dict[str, Any] = {"namespace": "graftwork", "registry": self._registry}
        ProcessCollector(registry=self._registry)
        self.requests = Counter("requests", "Requests answered.", ["route", "status"], **self._ours)
        self._task_rows = Counter("task_rows", "Rows of requests, by task.", ["task", "status"], **self._ours)
        seconds, sizes = self._ours | {"buckets": SECONDS}, self._ours | {"buckets": SIZES}
        says = "From a request's first line to the end of its answer."
        self._seconds = Histogram("request_seconds", says, ["route"], **seconds)
        self.queue_seconds = Histogram("queue_seconds", "From the queue to the first batch.", **seconds)
        self._batch_seconds = Histogram("batch_seconds", "To compute a batch.", **seconds)
        self._batch_rows = Histogram("batch_rows", "Rows in a batch.", **sizes)
        self._batch_tokens = Histogram("batch_tokens", "Tokens in a batch, about.", **sizes)

    def gauge(self, name: str, says: str, read: Callable[[], float]) -> None:
        """Register a gauge whose value is read on every scrape."""
        Gauge(name, says, **self._ours).set_function(read)

    def request(self, route: str, status: int, seconds: float, asked: Mapping[str, int]) -> None:
        """Count an answered request, its duration, and by task the rows that were asked."""
        self.requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        for task, rows in asked.items():
            self._task_rows.labels(task, str(status)).inc(rows)

    def batch(self, rows: int, tokens: int, seconds: float) -> None:
        """Observe a finished batch."""
        self._batch_rows.observe(rows)
        self._batch_tokens.observe(tokens)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
