"""A meter: reads one cost of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from graftwork.config import Prices
from graftwork.errors import UnknownName
from graftwork.registry import meters

GRADES = ("meter", "counter", "model", "guess")


@dataclass(frozen=True)
class Cost:
    """One line of a price tag."""

    value: float | None  # None: unknown, and said so rather than guessed
    unit: str  # "s", "parameters", "bytes", "FLOP", "J", "g", "per second", a currency
    grade: str  # "meter" read off an instrument, "counter" counted, "model" computed from the others, "guess"


@dataclass(frozen=True)
class Meaning:
    """What is to be known of a cost beside its numbers."""

    title: str = ""  # as a page tells it, the unit stands at the number; "": its name
    more_is_better: bool = False
    summed: bool = False  # a board over several tasks has its sum
    shared: bool = False  # the tasks that build on one pre-training share it
    of_prices: bool = False  # it follows from other costs and the price list, and so can be had by another list


@dataclass
class Phase:
    """What one phase of a run took."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: Phase) -> None:
        """Add another stretch of the same phase."""
        self.wall_seconds += other.wall_seconds
        self.cpu_seconds += other.cpu_seconds

    def __add__(self, other: Phase) -> Phase:
        """Both, one after the other."""
        return Phase(self.wall_seconds + other.wall_seconds, self.cpu_seconds + other.cpu_seconds)

    def __sub__(self, other: Phase) -> Phase:
        """What is left without a part of it."""
        return Phase(self.wall_seconds - other.wall_seconds, self.cpu_seconds - other.cpu_seconds)


class Stopwatch:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Phase:
        """Seconds since the start."""
        return Phase(time.perf_counter() - self._wall, time.process_time() - self._cpu)


@dataclass
class Readings:
    """The raw readings of one run, from which every meter computes its cost."""

    phases: dict[str, Phase] = field(default_factory=dict)  # "load", "fit", "evaluate", "save": what was really spent
    charged: Phase = field(default_factory=Phase)  # shared work that another run had paid for, charged in full
    trained_parameters: int = 0
    stored_parameters: int = 0
    stored_bytes: int = 0
    train_flops: float | None = None  # every multiply and add executed for training, padding included
    train_flops_grade: str = "counter"
    padding_flops: float | None = None  # the part of train_flops spent on padding
    predict_flops: float | None = None  # one example of median length
    predict_flops_grade: str = "counter"
    predict_latency_seconds: float | None = None
    predict_per_second: float | None = None
    loaded_before: bool = False  # "load" was spent before the meters began
    charged_evaluate: Phase = field(default_factory=Phase)  # as `charged`, of what answers the test split: no training
    runs_at_once: int = 1  # runs that shared the machine; its counters hold the work of all of them


class Meter(Protocol):
    """Registered under the name of its cost. `begin` before the run's first work, `end` after its last.

    It may have a `meaning` too, and be one that `Stops`.
    """

    needs: tuple[str, ...]  # costs that must be known first

    def begin(self) -> Any:
        """A mark; whatever `end` wants back."""

    def end(self, mark: Any, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """The cost; `costs` holds those named in `needs`, `prices` is the user's."""


@runtime_checkable
class Stops(Protocol):
    """A meter that shows what was drawn until it is read: it counts the phases, and not the metering after them."""

    def stop(self, mark: Any) -> Any:
        """Asked after each phase; what it said last is the mark that `end` gets."""


def meaning_of(cost: str) -> Meaning:
    """What its meter says of a cost, if it does; a cost that none measures here came with the board of another."""
    try:
        meaning: Meaning = getattr(meters.get(cost), "meaning", Meaning())
    except UnknownName:
        return Meaning()
    return meaning
