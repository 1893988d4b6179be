"""The price tag: every meter, in the order of their needs, at next to no cost of its own."""

from __future__ import annotations

import time
from graphlib import CycleError
from typing import Any

import pytest

from graftwork.config import Prices
from graftwork.core.meter import Cost, Phase, Readings
from graftwork.errors import UnknownName
from graftwork.registry import Registry
from graftwork.run import price_tag
from graftwork.run.price_tag import begin_all, read_costs

READINGS = Readings(phases={"load": Phase(1, 1), "fit": Phase(2, 3)})
COSTS = {
    "train_seconds", "train_cpu_seconds", "total_seconds", "trained_parameters", "stored_parameters", "stored_bytes",
    "train_flops", "padding_flops", "predict_flops", "peak_memory_bytes", "energy_joules", "co2e_grams", "money",
    "predict_latency_seconds", "predict_per_second",
}  # fmt: skip


def meter(cost: float, *needs: str) -> type:
    """A meter that adds `cost` to what it needs, and sees nothing else."""

    class Sum:
        def __init__(self) -> None:
            self.needs = needs

        def begin(self) -> float:
            return cost

        def end(self, mark: float, readings: Readings, costs: dict[str, Cost], prices: Prices) -> Cost:
            assert set(costs) == set(needs)
            return Cost(mark + sum(cost.value or 0.0 for cost in costs.values()), "s", "meter")

    return Sum


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Registry[Any]:
    """A registry with no meter but those that a test puts in."""
    empty: Registry[Any] = Registry("meter", "graftwork.run")  # any folder will do: what stands in it is not read
    monkeypatch.setattr(empty, "names", lambda: sorted(empty._parts))
    monkeypatch.setattr(price_tag, "meters", empty)
    return empty


def test_every_cost_is_on_the_tag() -> None:
    costs = read_costs(begin_all(), READINGS, Prices())
    assert costs.keys() >= COSTS and list(costs) == sorted(costs)


def test_costs_add_up_across_meters() -> None:
    prices = Prices(currency="EUR", per_hour=36, grams_per_kwh=400)
    costs = read_costs(begin_all(), READINGS, prices)
    assert costs["total_seconds"].value == 3
    assert costs["money"] == Cost(pytest.approx(0.03), "EUR", "model")  # type: ignore[arg-type]
    energy, carbon = costs["energy_joules"].value, costs["co2e_grams"].value
    assert energy and carbon == pytest.approx(energy / 3.6e6 * 400)


def test_needs_are_met_first_whatever_the_names(parts: Registry[Any]) -> None:
    for name, part in (("a", meter(1, "b", "c")), ("b", meter(10, "c")), ("c", meter(100))):
        parts.register(name)(part)
    costs = read_costs(begin_all(), READINGS, Prices())
    assert {name: cost.value for name, cost in costs.items()} == {"a": 211, "b": 110, "c": 100}


def test_a_need_that_nothing_measures(parts: Registry[Any]) -> None:
    parts.register("total_seconds")(meter(1))
    parts.register("a")(meter(1, "totl_seconds"))
    with pytest.raises(UnknownName, match="did you mean 'total_seconds'"):
        read_costs(begin_all(), READINGS, Prices())


def test_two_that_need_each_other(parts: Registry[Any]) -> None:
    parts.register("a")(meter(1, "b"))
    parts.register("b")(meter(1, "a"))
    with pytest.raises(CycleError):
        read_costs(begin_all(), READINGS, Prices())


def test_a_tag_costs_milliseconds() -> None:
    begin_all()  # the first call imports the meters

    def seconds() -> float:
        began = time.perf_counter()
        read_costs(begin_all(), READINGS, Prices())
        return time.perf_counter() - began

    assert min(seconds() for _ in range(3)) < 0.2
