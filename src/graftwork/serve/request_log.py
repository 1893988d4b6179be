"""The request log: one line of JSON per request, written by its own thread so that a slow reader blocks no answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from graftwork.io.files import finite

KEPT = 100_000  # maximum lines waiting for a slow reader; further ones are counted and dropped
PAUSE_SECONDS = 0.2  # between writes


class Records:
    """A buffered writer of log lines to `stream`."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._waiting: list[Mapping[str, Any]] = []
        self._lost = 0
        self._lock = threading.Lock()  # held while a line is added, or all are taken
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write the remaining lines, waiting at most a second for a stalled reader."""
        self._stop.set()
        self._thread.join(timeout=1)

    def event(self, event: str, **facts: Any) -> None:
        """Log an event of the server itself."""
        self.line({"event": event} | facts)

    def line(self, facts: Mapping[str, Any]) -> None:
        """Queue a line with the time, then `facts`."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | dict(facts)
        with self._lock:
            if len(self._waiting) < KEPT:
                self._waiting.append(line)
            else:
                self._lost += 1

    def _work(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            lines, self._waiting = self._waiting, []
            lost, self._lost = self._lost, 0
        if lost:
            lines.append({"event": "log lines lost: its reader is too slow", "lines": lost})
        if lines:
            try:
                self._stream.write("".join(json.dumps(finite(line), default=str) + "\n" for line in lines))
                self._stream.flush()
            except (OSError, ValueError):
                return  # the log has no reader any more; the server continues
