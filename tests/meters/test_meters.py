"""Every meter against values worked out by hand; peak memory and energy have more in files of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graftwork.config import Prices
from graftwork.core.meter import GRADES, Cost, Phase, Readings
from graftwork.registry import meters

UNITS = {"s", "parameters", "bytes", "FLOP", "J", "g", "per second", "EUR"}
NAME_ENDS = {"seconds": "s", "parameters": "parameters", "bytes": "bytes", "flops": "FLOP", "joules": "J",
             "grams": "g", "per_second": "per second"}  # fmt: skip

READINGS = Readings(
    phases={"load": Phase(1, 2), "fit": Phase(10, 18), "evaluate": Phase(3, 5), "save": Phase(0.5, 0.25)},
    charged=Phase(4, 7),
    trained_parameters=1_000,
    stored_parameters=1_200,
    stored_bytes=4_800,
    train_flops=3e12,
    train_flops_grade="model",
    padding_flops=1e11,
    predict_flops=2e9,
    predict_flops_grade="counter",
    predict_latency_seconds=0.004,
    predict_per_second=900.0,
)
RENTED = Prices(currency="EUR", per_hour=3.6, grams_per_kwh=380.0, pue=1.5)
OWNED = Prices(currency="EUR", per_kwh=0.30, pue=1.5)
KWH = Cost(3.6e6, "J", "counter")  # one kilowatt-hour is 3.6 million joules


def measure(name: str, readings: Readings = READINGS, prices: Prices = RENTED, **needed: Cost) -> Cost:
    """The cost a fresh meter reads; what it needs is given, or stands for one second and one kWh."""
    meter = meters.get(name)()
    given: dict[str, Any] = {"total_seconds": Cost(1.0, "s", "meter"), "energy_joules": KWH} | needed
    return meter.end(meter.begin(), readings, {need: given[need] for need in meter.needs}, prices)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train_seconds", Cost(14.0, "s", "meter")),  # fit 10 + charged 4
        ("train_cpu_seconds", Cost(25.0, "s", "counter")),  # 18 + 7
        ("total_seconds", Cost(18.5, "s", "meter")),  # 1 + 10 + 3 + 0.5 + 4
        ("trained_parameters", Cost(1_000, "parameters", "counter")),
        ("stored_parameters", Cost(1_200, "parameters", "counter")),
        ("stored_bytes", Cost(4_800, "bytes", "counter")),
        ("train_flops", Cost(3e12, "FLOP", "model")),
        ("padding_flops", Cost(1e11, "FLOP", "model")),
        ("predict_flops", Cost(2e9, "FLOP", "counter")),
        ("predict_latency_seconds", Cost(0.004, "s", "meter")),
        ("predict_per_second", Cost(900.0, "per second", "meter")),
        ("co2e_grams", Cost(570.0, "g", "model")),  # 1 kWh x 1.5 x 380 g
        ("money", Cost(0.001, "EUR", "model")),  # 1 s of 3.6 EUR an hour
    ],
)
def test_by_hand(name: str, expected: Cost) -> None:
    cost = measure(name)
    assert cost.value == pytest.approx(expected.value) and replace(cost, value=expected.value) == expected


@pytest.mark.parametrize("name", meters.names())
def test_units_grades_and_signs(name: str) -> None:
    for readings in (READINGS, Readings()):
        cost = measure(name, readings)
        assert cost.unit in UNITS and cost.grade in GRADES
        assert cost.value is None or cost.value >= 0
        for end, unit in NAME_ENDS.items():
            if name.endswith(end):
                assert cost.unit == ("per second" if name.endswith("per_second") else unit)


@pytest.mark.parametrize("name", ["train_seconds", "train_cpu_seconds"])
def test_training_is_the_fit_alone(name: str) -> None:
    others = {phase: Phase(50, 50) for phase in ("load", "evaluate", "save")}
    assert measure(name, Readings(phases=others)).value == 0
    assert measure(name, Readings(phases=others | {"fit": Phase(2, 2)})).value == 2


@pytest.mark.parametrize(
    "name", ["train_flops", "padding_flops", "predict_flops", "predict_latency_seconds", "predict_per_second"]
)
def test_what_was_not_measured_is_unknown_and_not_nought(name: str) -> None:
    assert measure(name, Readings()).value is None


def test_no_price_list_leaves_money_and_carbon_blank() -> None:
    assert measure("money", prices=Prices()).value is None
    assert measure("co2e_grams", prices=Prices()).value is None
    assert measure("co2e_grams", prices=Prices(country="DEU")).value is None


def test_a_kilowatt_hour_is_billed_once_per_3_6_million_joules() -> None:
    assert measure("money", prices=OWNED).value == pytest.approx(0.45)  # 1 kWh x 1.5 x 0.30 EUR
    taken_for_watt_hours = Cost(1_000.0, "J", "counter")
    assert measure("money", prices=OWNED, energy_joules=taken_for_watt_hours).value == pytest.approx(1.25e-4)
    assert measure("co2e_grams", energy_joules=taken_for_watt_hours).value == pytest.approx(570 / 3600)


def test_an_hour_is_billed_once_per_3600_seconds() -> None:
    assert measure("money", total_seconds=Cost(3600.0, "s", "meter")).value == pytest.approx(3.6)


@pytest.mark.parametrize("grade", GRADES)
def test_a_computed_cost_is_known_no_better_than_its_source(grade: str) -> None:
    inherited = "guess" if grade == "guess" else "model"
    energy = Cost(1.0, "J", grade)
    assert measure("co2e_grams", energy_joules=energy).grade == inherited
    assert measure("money", prices=OWNED, energy_joules=energy).grade == inherited
    assert measure("money", prices=RENTED, energy_joules=energy).grade == "model"  # by the hour: energy plays no part


def test_unknown_energy_stays_unknown() -> None:
    unknown = Cost(None, "J", "guess")
    assert measure("co2e_grams", energy_joules=unknown).value is None
    assert measure("money", prices=OWNED, energy_joules=unknown).value is None
