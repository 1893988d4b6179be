"""Metrics for Prometheus, served at `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


class Measures:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.requests = Counter(
            "graftwork_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._task_rows = Counter(
            "graftwork_task_rows", "Rows of requests, by task.", ["task", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "graftwork_request_seconds",
            "From a request's first line to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self.queue_seconds = self._histogram("queue_seconds", "From the queue to the first batch.", SECONDS)
        self._batch_seconds = self._histogram("batch_seconds", "To compute a batch.", SECONDS)
        self._batch_rows = self._histogram("batch_rows", "Rows in a batch.", SIZES)
        self._batch_tokens = self._histogram("batch_tokens", "Tokens in a batch, about.", SIZES)

    def _histogram(self, name: str, says: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"graftwork_{name}", says, buckets=buckets, registry=self._registry)

    def gauge(self, name: str, says: str, read: Callable[[], float]) -> None:
        """Register a gauge whose value is read on every scrape."""
        Gauge(f"graftwork_{name}", says, registry=self._registry).set_function(read)

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
