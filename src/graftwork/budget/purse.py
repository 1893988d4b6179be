"""A budget in time, energy or money: how much of it is spent, and the hard stop when it is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase, Readings
from graftwork.errors import ConfigError
from graftwork.registry import meters
from graftwork.run.price_tag import read_costs
from graftwork.units import read_amount, show

METERS = {"s": "total_seconds", "J": "energy_joules"}  # unit -> what reads it; any other unit is a currency
MONEY = "money"
LAP_SECONDS = 60  # counters of energy wrap round: they are read at least this often
LOOK_SECONDS = 0.1  # how often the hard stop looks


class Clock(Protocol):
    """What tells the time; `core.meter.Stopwatch` is one."""

    def read(self) -> Phase:
        """Wall-clock and processor seconds since it was started."""


class OverBudget(BaseException):
    """Ends a run as Ctrl-C would: no `Exception`, because it is no failure of the run and leaves no receipt."""


@dataclass(frozen=True)
class Budget:
    """What may be spent."""

    amount: float  # seconds, joules, or money
    unit: str  # "s", "J", or the currency

    def __str__(self) -> str:
        return show(self.amount, self.unit)


def parse_budget(words: str, prices: Prices) -> Budget:
    """`"5min"`, `"20kJ"` or `"0.02EUR"`. Raises `ConfigError`, also for money without a price of that currency."""
    amount, unit = read_amount(words)
    if unit not in METERS:
        if prices.per_hour is None and prices.per_kwh is None:
            raise ConfigError(
                "a budget in money needs a price list",
                got=words,
                expected="--prices FILE with per_hour or per_kwh",
                do="write one after docs/prices.example.toml, or give the budget as a time",
            )
        if unit != prices.currency:
            raise ConfigError("the budget is in another currency than the prices", got=unit, expected=prices.currency)
    return Budget(amount, unit)


@dataclass(frozen=True)
class _Lap:
    """A stretch of time by whose marks the meters are read."""

    before: float  # spent in earlier ones
    began: Phase  # what the watch showed then
    marks: Mapping[str, Any]


class Purse:
    """How much of a budget is spent since `watch` was started.

    Energy is known as in a price tag: by the processor's counters, else from processor seconds, which is a guess.
    """

    def __init__(self, budget: Budget, prices: Prices, watch: Clock):
        self.budget, self.prices, self.watch = budget, prices, watch
        self._lap = _Lap(0.0, Phase(), self._begin())
        self._rated_from = (0.0, 0.0)  # seconds and amount spent when work of the present sort began
        self.grade = self._cost(self._lap, Phase()).grade

    def spent(self) -> float:
        """In the budget's unit. The hard stop's timer may ask in the middle of this: a lap is begun in one step."""
        lap, now = self._lap, self.watch.read()
        phase = now - lap.began
        cost = self._cost(lap, phase)
        self.grade = cost.grade
        amount = lap.before + (cost.value or 0.0)
        if phase.wall_seconds > LAP_SECONDS:
            self._lap = _Lap(amount, now, self._begin())
        return amount

    @property
    def left(self) -> float:
        """What is not spent yet, in the budget's unit; below 0 once more is spent than there was."""
        return self.budget.amount - self.spent()

    def seconds(self) -> float:
        """Since the start, whatever the unit."""
        return self.watch.read().wall_seconds

    def start_rating(self) -> None:
        """From here on the machine does what it will be doing: `price` goes by what that costs."""
        self._rated_from = (self.seconds(), self.spent())

    def price(self, seconds: float) -> float:
        """What so many seconds of the present sort of work cost, in the budget's unit."""
        if self.budget.unit == "s":
            return seconds
        now, spent = self.seconds(), self.spent()
        began, before = self._rated_from
        if now - began < LOOK_SECONDS:  # too short to tell: the rate since the start
            began, before = 0.0, 0.0
        return seconds * (spent - before) / max(now - began, 1e-9)

    def _begin(self) -> dict[str, Any]:
        return {name: meters.get(name)().begin() for name in (*METERS.values(), MONEY)}

    def _cost(self, lap: _Lap, phase: Phase) -> Cost:
        costs = read_costs(lap.marks, Readings(phases={"ladder": phase}), self.prices)
        return costs[METERS.get(self.budget.unit, MONEY)]


@contextmanager
def hard_stop(purse: Purse, limit: float) -> Iterator[Callable[[], None]]:
    """A check that raises `OverBudget`, once, when more than `limit` is spent.

    It is for whoever goes step by step; in the main thread of a system with timers it is also called from inside
    whatever runs, so that a long pass without steps is stopped too.
    """
    timers = hasattr(signal, "setitimer")

    def disarm() -> None:
        if timers:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def check() -> None:
        if purse.spent() > limit:
            disarm()  # what is cleaned up on the way out must not be stopped again
            raise OverBudget

    try:
        before = signal.signal(signal.SIGALRM, lambda number, frame: check()) if timers else None
    except ValueError:  # not the main thread
        timers = False
    if timers:
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    try:
        yield check
    finally:
        if timers:
            disarm()
            signal.signal(signal.SIGALRM, before)
