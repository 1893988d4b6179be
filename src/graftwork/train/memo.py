"""Memoised seed-independent work, done once for the runs of a process and charged to each of them in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import Workbench
from graftwork.core.tally import Tally

T = TypeVar("T")


@dataclass
class MemoEntry:
    """Results for one data set on one backbone by name, each with its time and FLOP."""

    known: dict[str, tuple[Any, Phase, Tally]] = field(default_factory=dict)

    def get(self, bench: Workbench, name: str, work: Callable[[Tally], T]) -> T:
        """Return the value of `work`, computed or cached; `bench` is charged for it either way."""
        if name in self.known:
            bench.charged.add(self.known[name][1])
        else:
            watch, tally = Stopwatch(), Tally()
            value = work(tally)
            self.known[name] = (value, watch.read(), tally)
        value, _, tally = self.known[name]
        bench.tally.include(tally)
        return value
