"""Budgets in time, energy or money: the account of what is spent, and the hard stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase, Readings
from graftwork.documents import document
from graftwork.errors import ConfigError
from graftwork.registry import meters
from graftwork.run.price_tag import read_costs
from graftwork.units import read_amount, show

METERS = {"s": "total_seconds", "J": "energy_joules"}  # unit -> its meter; any other unit is a currency
MONEY = "money"
LAP_SECONDS = 60  # energy counters wrap around, so they are read at least this often
LOOK_SECONDS = 0.1  # interval of the hard stop's checks


class Clock(Protocol):
    """A clock, such as `core.meter.Stopwatch`."""

    def read(self) -> Phase:
        """Return the wall-clock and processor seconds since its start."""


class OverBudget(BaseException):
    """Raised to end a run at the hard stop. Not an `Exception`: like Ctrl-C it is no failure and leaves no receipt."""


@dataclass(frozen=True)
class Budget:
    """An amount that may be spent, with its unit."""

    amount: float  # seconds, joules, or money
    unit: str  # "s", "J", or the currency

    def __str__(self) -> str:
        return show(self.amount, self.unit)


def parse_budget(words: str, prices: Prices) -> Budget:
    """Parse `"5min"`, `"20kJ"` or `"0.02EUR"`. Raises `ConfigError`, also for money without prices in that currency."""
    amount, unit = read_amount(words)
    if unit not in METERS:
        if prices.per_hour is None and prices.per_kwh is None:
            raise ConfigError(
                "a budget in money needs a price list",
                got=words,
                expected="--prices FILE with per_hour or per_kwh",
                do=f"write one after {document('prices.example.toml')}, or give the budget as a time",
            )
        if unit != prices.currency:
            raise ConfigError("the budget is in another currency than the prices", got=unit, expected=prices.currency)
    return Budget(amount, unit)


@dataclass(frozen=True)
class _Lap:
    """An interval over which the meters are read."""

    before: float  # spent in earlier laps
    began: Phase  # reading of the watch at its start
    marks: Mapping[str, Any]  # meter -> what its `begin` returned


class BudgetAccount:
    """The account of a budget since the start of `watch`.

    Energy is measured as in a price tag: by the processor's counters, else estimated from processor seconds.
    """

    def __init__(self, budget: Budget, prices: Prices, watch: Clock):
        self.budget, self.prices, self.watch = budget, prices, watch
        self._lap = _Lap(0.0, Phase(), self._begin())
        self._rated_from = (0.0, 0.0)  # seconds and spent amount at the start of the current type of work
        self.grade = self._cost(self._lap, Phase()).grade

    def spent(self) -> float:
        """Return the spent amount in the budget's unit.

        The hard stop's timer may call this method while it is running, so a new lap replaces the old one in one step.
        """
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
        """The remaining amount in the budget's unit; negative once the budget is exceeded."""
        return self.budget.amount - self.spent()

    def seconds(self) -> float:
        """Return the wall-clock seconds since the start, for any unit of the budget."""
        return self.watch.read().wall_seconds

    def start_rating(self) -> None:
        """Start the period whose spending rate `price` uses; later work is assumed to be like the work from here on."""
        self._rated_from = (self.seconds(), self.spent())

    def price(self, seconds: float) -> float:
        """Return the cost of `seconds` of the current type of work, in the budget's unit."""
        if self.budget.unit == "s":
            return seconds
        now, spent = self.seconds(), self.spent()
        began, before = self._rated_from
        if now - began < LOOK_SECONDS:  # too short to estimate a rate: use the rate since the start
            began, before = 0.0, 0.0
        return seconds * (spent - before) / max(now - began, 1e-9)

    def _begin(self) -> dict[str, Any]:
        return {name: meters.get(name)().begin() for name in (*METERS.values(), MONEY)}

    def _cost(self, lap: _Lap, phase: Phase) -> Cost:
        costs = read_costs(lap.marks, Readings(phases={"ladder": phase}), self.prices)
        return costs[METERS.get(self.budget.unit, MONEY)]


@contextmanager
def hard_stop(account: BudgetAccount, limit: float) -> Iterator[Callable[[], None]]:
    """Yield a check that raises `OverBudget` when more than `limit`, in the budget's unit, is spent.

    The caller calls it at every step; in the main thread, on systems with timers, a signal calls it as well, so that a
    long forward pass without steps is also stopped.
    """
    timers = hasattr(signal, "setitimer")

    def disarm() -> None:
        if timers:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def check() -> None:
        if account.spent() > limit:
            disarm()  # the cleanup that follows must not be stopped again
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
