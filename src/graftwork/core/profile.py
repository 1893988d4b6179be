"""Time profile of a run: wall seconds per phase, every second in one phase only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

PHASES = ("tokenise", "prefix", "head start", "forward", "backward", "optimiser", "evaluate", "write", "meter")
REST = "other"


class Profile:
    """A profile that runs from its creation. Phases nest: time counts for the innermost open phase, or for `REST`."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock, self._since = clock, clock()
        self._open = [REST]
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge the time of the block to `name`, one of `PHASES`."""
        assert name in PHASES, name
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def add(self, earlier: Mapping[str, float]) -> None:
        """Add the profile of an earlier attempt."""
        for name, seconds in earlier.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def read(self) -> dict[str, float]:
        """Return seconds so far per phase that occurred, in the order of `PHASES`, `REST` last."""
        self._charge()
        return {name: self._seconds[name] for name in (*PHASES, REST) if name in self._seconds}

    def _charge(self) -> None:
        now = self._clock()
        innermost = self._open[-1]
        self._seconds[innermost] = self._seconds.get(innermost, 0.0) + now - self._since
        self._since = now
