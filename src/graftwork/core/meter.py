"""A meter: measures one cost of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

from graftwork.config import Prices
from graftwork.errors import UnknownName
from graftwork.registry import meters

GRADES = ("meter", "counter", "model", "guess")


@dataclass(frozen=True)
class Cost:
    """One line of a price tag."""

    value: float | None  # None: unknown, not guessed
    unit: str  # "s", "parameters", "bytes", "FLOP", "J", "g", "per second", a currency
    grade: str  # "meter": read off an instrument, "counter": counted, "model": computed from other costs, "guess"


@dataclass(frozen=True)
class Meaning:
    """Properties of a cost other than its value."""

    title: str = ""  # title in reports, without the unit; "": the cost's name
    more_is_better: bool = False
    summed: bool = False  # a board over several tasks shows its sum
    shared: bool = False  # shared by the tasks that build on one pre-training
    of_prices: bool = False  # computed from other costs and the price list, so it can be recomputed with another list


@dataclass
class Phase:
    """Time spent in one phase of a run."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: Phase) -> None:
        """Add another interval of the same phase."""
        self.wall_seconds += other.wall_seconds
        self.cpu_seconds += other.cpu_seconds

    def __add__(self, other: Phase) -> Phase:
        """Return the sum of both."""
        return Phase(self.wall_seconds + other.wall_seconds, self.cpu_seconds + other.cpu_seconds)

    def __sub__(self, other: Phase) -> Phase:
        """Return the difference."""
        return Phase(self.wall_seconds - other.wall_seconds, self.cpu_seconds - other.cpu_seconds)


class Stopwatch:
    """A stopwatch that starts on creation."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Phase:
        """Return wall and CPU seconds since the start."""
        return Phase(time.perf_counter() - self._wall, time.process_time() - self._cpu)


@dataclass
class Readings:
    """The raw readings of one run, from which every meter computes its cost."""

    phases: dict[str, Phase] = field(default_factory=dict)  # "load", "fit", "evaluate", "save": time actually spent
    charged: Phase = field(default_factory=Phase)  # shared work already computed by another run, charged in full
    trained_parameters: int = 0
    stored_parameters: int = 0
    stored_bytes: int = 0
    train_flops: float | None = None  # all multiplies and adds executed for training, padding included
    train_flops_grade: str = "counter"
    padding_flops: float | None = None  # part of train_flops spent on padding
    predict_flops: float | None = None  # for one example of median length
    predict_flops_grade: str = "counter"
    predict_latency_seconds: float | None = None
    predict_per_second: float | None = None
    loaded_before: bool = False  # "load" was spent before the meters were started
    charged_evaluate: Phase = field(default_factory=Phase)  # as `charged`, for predicting the test split: no training
    runs_at_once: int = 1  # number of concurrent runs; the machine's counters include all of them


class Meter(Protocol):
    """A meter, registered under the name of its cost; `begin` precedes the run's first work, `end` follows its last.

    It may also have a `meaning`, and may implement `Stops`.
    """

    needs: tuple[str, ...]  # costs that must be computed first

    def begin(self) -> Any:
        """Start measuring; return a mark, an arbitrary value that is passed to `end`."""

    def end(self, mark: Any, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost; `costs` holds those named in `needs`, `prices` is the user's price list."""


@dataclass(frozen=True)
class FromReadings:
    """A meter whose `cost` follows from the readings of a run alone: it starts nothing and needs no other cost."""

    cost: Callable[[Readings], Cost]
    meaning: Meaning
    needs: tuple[str, ...] = ()

    def begin(self) -> None:
        """Do nothing: no state is needed."""

    def end(self, mark: None, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
        """Return the cost."""
        return self.cost(readings)


def from_readings(meaning: Meaning = Meaning()) -> Callable[[Callable[[Readings], Cost]], Callable[[], FromReadings]]:
    """Return a decorator that makes a meter of a function from readings to a cost."""
    return lambda cost: partial(FromReadings, cost, meaning)


@runtime_checkable
class Stops(Protocol):
    """A meter with a running counter that must be read after every phase, to exclude the metering that follows."""

    def stop(self, mark: Any) -> Any:
        """Called after each phase; the last returned mark is passed to `end`."""


def meaning_of(cost: str) -> Meaning:
    """Return the meaning that a cost's meter declares, else the default, also for a cost without a meter here."""
    try:
        meaning: Meaning = getattr(meters.get(cost)(), "meaning", Meaning())
    except UnknownName:
        return Meaning()
    return meaning
