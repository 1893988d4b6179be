"""Budgets: what they are in, how much is spent, and the hard stop."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from graftwork.budget import budget_account as budget
from graftwork.budget.budget_account import Budget, BudgetAccount, OverBudget, hard_stop, parse_budget
from graftwork.config import Prices
from graftwork.core.meter import Phase, Stopwatch
from graftwork.errors import ConfigError
from graftwork.meters import energy_joules

RENTED = Prices(currency="EUR", per_hour=3.6, date="2026-11-21", source="a list")
OWN = Prices(currency="USD", per_kwh=0.5, date="2026-11-21", source="a bill", pue=2.0)


@dataclass
class FakeWatch:
    """Shows what it is set to."""

    phase: Phase = field(default_factory=Phase)

    def read(self) -> Phase:
        return Phase(self.phase.wall_seconds, self.phase.cpu_seconds)


@pytest.fixture(autouse=True)
def no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Energy is computed from processor seconds, on every machine."""
    monkeypatch.setattr(energy_joules, "read_zones", dict)


def test_time_energy_and_money() -> None:
    assert parse_budget("5min", Prices()) == Budget(300, "s")
    assert parse_budget("3Wh", Prices()) == Budget(10_800, "J")
    assert parse_budget("0.02EUR", RENTED) == Budget(0.02, "EUR")
    assert str(parse_budget("5min", Prices())) == "5 min 0 s"


@pytest.mark.parametrize(
    ("words", "prices", "message"),
    [
        ("1EUR", Prices(), "a budget in money needs a price list"),
        ("1EUR", Prices(country="DE", grams_per_kwh=380), "per_hour or per_kwh"),
        ("1USD", RENTED, "another currency than the prices"),
        ("soon", RENTED, "not an amount"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_no_budget(words: str, prices: Prices, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_budget(words, prices)


@pytest.mark.parametrize(
    ("unit", "prices", "spent", "grade"),
    [
        ("s", Prices(), 100, "meter"),
        ("J", Prices(watts_per_core=10, idle_watts=1), 1_600, "guess"),
        ("EUR", RENTED, 0.1, "model"),
        ("USD", OWN, 1_500 / 3.6e6 * 0.5 * 2, "guess"),
    ],
)
def test_what_is_spent(unit: str, prices: Prices, spent: float, grade: str) -> None:
    watch = FakeWatch()
    account = BudgetAccount(Budget(10_000, unit), prices, watch)
    watch.phase = Phase(100, 150)
    assert account.spent() == pytest.approx(spent)
    assert account.grade == grade
    assert account.left == pytest.approx(10_000 - spent)


def test_laps_add_up_whatever_is_asked_when() -> None:
    watch = FakeWatch()
    account = BudgetAccount(Budget(1, "J"), Prices(), watch)
    for seconds in (1, 59, 200, 201, 500):
        watch.phase = Phase(seconds, 2 * seconds)
        assert account.spent() == pytest.approx(20 * seconds)


def test_a_lap_that_the_timer_closes_meanwhile_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, real, asked = FakeWatch(), budget.read_costs, []
    account = BudgetAccount(Budget(1, "J"), Prices(), watch)

    def interrupted(*given: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            assert account.spent() == pytest.approx(2_000)
        return real(*given)

    monkeypatch.setattr(budget, "read_costs", interrupted)
    watch.phase = Phase(100, 200)
    assert account.spent() == pytest.approx(2_000) and len(asked) == 2
    watch.phase = Phase(130, 260)
    assert account.spent() == pytest.approx(2_600)


def test_a_price_goes_by_what_the_machine_is_doing_now() -> None:
    watch = FakeWatch()
    account = BudgetAccount(Budget(1, "J"), Prices(watts_per_core=10), watch)
    watch.phase = Phase(10, 1)  # idle
    assert account.price(100) == pytest.approx(100)
    account.start_rating()
    assert account.price(100) == pytest.approx(100)  # nothing is known of the new work yet
    watch.phase = Phase(12, 5)  # two cores at work
    assert account.price(100) == pytest.approx(2_000)
    assert BudgetAccount(Budget(1, "s"), Prices(), watch).price(100) == 100


def test_the_check_stops_what_goes_step_by_step() -> None:
    watch = FakeWatch()
    account = BudgetAccount(Budget(10, "s"), Prices(), watch)
    with pytest.raises(OverBudget), hard_stop(account, 10) as check:
        for second in range(100):
            watch.phase = Phase(second, second)
            check()
    assert watch.phase.wall_seconds == 11
    assert not issubclass(OverBudget, Exception)  # or a run would take it for a failure of its own


def test_what_has_no_steps_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LOOK_SECONDS", 0.01)
    account = BudgetAccount(Budget(0.05, "s"), Prices(), Stopwatch())
    began, cleaned = time.perf_counter(), False
    with pytest.raises(OverBudget), hard_stop(account, 0.05):
        try:
            while time.perf_counter() - began < 5:
                pass
        finally:
            time.sleep(0.03)  # cleaning up is not stopped again
            cleaned = True
    assert cleaned and time.perf_counter() - began < 2


def test_no_stop_outlives_its_block_and_other_threads_have_the_check() -> None:
    account = BudgetAccount(Budget(0.01, "s"), Prices(), Stopwatch())
    with hard_stop(account, 1e9):
        pass
    raised: list[bool] = []

    def work() -> None:
        time.sleep(0.02)
        try:
            with hard_stop(account, 0.01) as check:
                check()
        except OverBudget:
            raised.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    time.sleep(0.15)  # a timer that is still armed would ring here
    assert raised == [True]
