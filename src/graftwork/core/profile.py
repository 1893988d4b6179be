"""Where a run's time goes: wall seconds per phase, every second in one phase only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

PHASES = ("tokenise", "prefix", "head start", "forward", "backward", "optimiser", "evaluate", "write", "meter")
REST = "other"


class Profile:
    """Runs from the moment it is made. Phases nest: a second belongs to the innermost that is open, or to the rest."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock, self._since = clock, clock()
        self._open = [REST]
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge what happens inside to `name`, one of `PHASES`."""
        assert name in PHASES, name
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def add(self, earlier: Mapping[str, float]) -> None:
        """Count what an earlier attempt has read, too."""
        for name, seconds in earlier.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def read(self) -> dict[str, float]:
        """Seconds so far, of the phases that there were, in the order of `PHASES`, the rest last."""
        self._charge()
        return {name: self._seconds[name] for name in (*PHASES, REST) if name in self._seconds}

    def _charge(self) -> None:
        now = self._clock()
        innermost = self._open[-1]
        self._seconds[innermost] = self._seconds.get(innermost, 0.0) + now - self._since
        self._since = now
