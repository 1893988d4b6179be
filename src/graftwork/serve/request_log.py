"""The log: a line of JSON a request, written by a thread of its own so that a slow reader of it stops no answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from graftwork.io.files import finite

KEPT = 100_000  # lines that wait for a slow reader; what comes beyond them is counted, and lost
PAUSE_SECONDS = 0.2  # between writes


class Records:
    """Lines for `stream`."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._waiting: list[Mapping[str, Any]] = []
        self._lost = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left; a reader that has stopped reading is given a second."""
        self._stop.set()
        self._thread.join(timeout=1)

    def event(self, event: str, **facts: Any) -> None:
        """Something that happened to the server itself."""
        self.line({"event": event} | facts)

    def line(self, facts: Mapping[str, Any]) -> None:
        """A line with the time before `facts`."""
        if len(self._waiting) >= KEPT:
            self._lost += 1
            return
        self._waiting.append({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | dict(facts))

    def _work(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        lines, self._waiting = self._waiting, []
        lost, self._lost = self._lost, 0
        if lost:
            lines.append({"event": "log lines lost: its reader is too slow", "lines": lost})
        if lines:
            try:
                self._stream.write("".join(json.dumps(finite(line), default=str) + "\n" for line in lines))
                self._stream.flush()
            except (OSError, ValueError):
                return  # nobody reads the log any more, which is no reason to stop answering
