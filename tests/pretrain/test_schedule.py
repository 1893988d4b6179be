"""The rate, the lengths and the passes of steps; how many steps there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graftwork.config import Prices
from graftwork.core.meter import Phase
from graftwork.errors import ConfigError, UnknownName
from graftwork.pretrain.duration import Allowance, Extent, account_of, flop_of, paid_by, steps_of
from graftwork.pretrain.objective import PretrainingRecipe
from graftwork.pretrain.schedule import length_at, parts, positions, rate
from graftwork.pretrain.start_point import recipe_of

RECIPE = PretrainingRecipe(learning_rate=1e-3, batch=10, length=512, short_length=128, warm_up=0.1)


def test_rates() -> None:
    assert [rate(RECIPE, step, 20) for step in (0, 1, 2)] == [0.5, 1.0, 1.0]
    assert rate(RECIPE, 11, 20) == pytest.approx(0.5)
    cosine = replace(RECIPE, schedule="cosine")
    assert rate(cosine, 11, 20) == pytest.approx(0.5)
    assert rate(cosine, 5, 20) > rate(RECIPE, 5, 20)
    assert rate(replace(RECIPE, schedule="constant"), 19, 20) == 1.0
    slanted = [rate(replace(RECIPE, schedule="slanted"), step, 20) for step in (0, 1, 2, 11, 19)]
    assert slanted == pytest.approx([1 / 32, 0.5 + 1 / 64, 1.0, 0.5 + 1 / 64, 1 / 32 + 31 / 32 / 18])


def test_short_rows_come_first() -> None:
    assert [length_at(RECIPE, step, 20) for step in (0, 17, 18, 19)] == [128, 128, 512, 512]
    assert positions(RECIPE, 20, 20) == 10 * (18 * 128 + 2 * 512)
    assert positions(RECIPE, 5, 20) == 10 * 5 * 128
    assert steps_of(RECIPE, 10 * (18 * 128 + 2 * 512)) == 20
    assert length_at(replace(RECIPE, short_length=0), 0, 20) == 512


def test_passes() -> None:
    assert parts(RECIPE, 10) == [(0, 10)]
    assert parts(replace(RECIPE, rows_at_once=4), 10) == [(0, 4), (4, 8), (8, 10)]
    assert parts(RECIPE, 25) == [(0, 25)]  # rows of varied lengths
    assert parts(replace(RECIPE, rows_at_once=4), 25) == [(0, 10), (10, 20), (20, 25)]
    assert parts(replace(RECIPE, rows_at_once=4), 1) == [(0, 1)]


def test_extents() -> None:
    assert Extent().as_json() == {"passes": 1}
    assert Extent(steps=5).as_json() == {"steps": 5}
    assert Extent(tokens=700).as_json() == {"tokens": 700}
    assert Extent(budget="5min").as_json() == {"budget": "5min"}
    with pytest.raises(ConfigError, match="--steps and --budget"):
        Extent(steps=5, budget="5min")
    with pytest.raises(ConfigError, match="at least 1"):
        Extent(tokens=0)
    assert (flop_of("1e15FLOP"), flop_of("2.5 TFLOP"), flop_of("5min")) == (1e15, 2.5e12, None)


@pytest.mark.parametrize("words", ["0FLOP", "0.0 TFLOP", "1e400FLOP"])
def test_no_amount_of_arithmetic(words: str) -> None:
    with pytest.raises(ConfigError, match="not an amount of FLOP"):
        flop_of(words)


def test_arithmetic_that_does_not_pay_for_a_step_is_refused() -> None:
    assert (paid_by(6e6, 2e6), paid_by(7e6, 2e6), paid_by(7e6, 2e6, before=2e6)) == (3, 3, 2)
    with pytest.raises(ConfigError, match="does not pay for the first step"):
        paid_by(3e6, 2e6, before=2e6)
    with pytest.raises(ConfigError, match="does not pay for the first step") as caught:
        paid_by(1.0, 2e6)
    assert "1 FLOP" in str(caught.value) and "at least 2 MFLOP" in str(caught.value)


class _Clock:
    def __init__(self) -> None:
        self.phase = Phase()

    def read(self) -> Phase:
        return self.phase


def test_a_budget_of_time_becomes_steps() -> None:
    clock = _Clock()
    account = account_of(Extent(budget="100s"), Prices(), clock)
    assert account is not None
    allowance = Allowance(account)
    clock.phase = Phase(6, 6)
    assert allowance.steps(2.0, kept=10.0) == 40
    clock.phase = Phase(99, 99)
    assert not allowance.is_spent()
    with pytest.raises(ConfigError, match="before the first step"):
        allowance.steps(2.0, kept=0.0)
    assert Allowance(account, before=2.0).is_spent()


def test_a_budget_of_energy_is_charged_from_the_start_and_rated_by_training() -> None:
    clock = _Clock()
    account = account_of(Extent(budget="3kJ"), Prices(watts_per_core=10, idle_watts=0), clock)
    assert account is not None
    clock.phase = Phase(100, 100)  # one core reads the text: 1 kJ
    allowance = Allowance(account)
    clock.phase = Phase(110, 140)  # four train
    assert allowance.steps(1.0, kept=0.0) == (3000 * 0.96 - 1400) // 40


def test_what_is_no_time_energy_or_money_has_no_purse() -> None:
    for extent in (Extent(steps=5), Extent(budget="1TFLOP")):
        assert account_of(extent, Prices(), _Clock()) is None


def test_recipes() -> None:
    assert recipe_of(RECIPE, {"batch": 4, "length": None}).batch == 4
    with pytest.raises(UnknownName, match="linea"):
        recipe_of(RECIPE, {"schedule": "linea"})
    with pytest.raises(UnknownName, match="momentum"):
        recipe_of(RECIPE, {"momentum": 1})
    with pytest.raises(ConfigError, match="batch"):
        recipe_of(RECIPE, {"batch": 0})
    with pytest.raises(ConfigError, match="short_length"):
        recipe_of(RECIPE, {"length": 64})
