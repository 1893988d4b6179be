"""Sums, bands and crossings against numbers that were computed by hand."""

from __future__ import annotations

import pytest

from graftwork.ship.cost_line import Amount, CostLine, crossing, sum_amounts


def line(name: str, fixed: float | None, each: float | None, unit: str = "EUR", grade: str = "meter") -> CostLine:
    return CostLine(name, Amount.graded(fixed, unit, grade), Amount.graded(each, unit, grade))


CROSS = [  # (fixed, each) of a and b -> at, cheaper below, cheaper above
    ((2.0, 3e-6), (5.0, 1e-6), 1_500_000.0, "a", "b"),  # 3 / 2e-6
    ((5.0, 1e-6), (2.0, 3e-6), 1_500_000.0, "b", "a"),  # the same, named the other way round
    ((0.1, 0.7), (0.35, 0.2), 0.5, "a", "b"),  # between two predictions
    ((1.0, 4.0), (7.0, 4.0), None, "a", "b"),  # parallel
    ((1.0, 2.0), (1.5, 2.5), None, "a", "b"),  # b is dearer in both
    ((0.0, 0.0), (3.0, 0.25), None, "a", "b"),  # a is free
    ((2.0, 0.5), (2.0, 0.25), 0.0, "a", "b"),  # they meet at 0: b is cheaper from the first prediction on
    ((0.0, 1e-9), (1e3, 0.0), 1e12, "a", "b"),  # free predictions
    ((123.456, 7.89e-5), (98.7, 1.234e-4), 24.756 / 4.45e-5, "b", "a"),
    ((3e-7, 2e-12), (8e-7, 1e-12), 500_000.0, "a", "b"),  # small costs
]


@pytest.mark.parametrize(("one", "other", "at", "below", "above"), CROSS)
def test_lines_cross_where_they_should(
    one: tuple[float, float], other: tuple[float, float], at: float | None, below: str, above: str
) -> None:
    found = crossing(line("a", *one), line("b", *other))
    assert found is not None
    assert (found.below, found.above) == (below, above)
    assert found.at == (None if at is None else pytest.approx(at, rel=1e-9))
    if at is not None:
        assert line("a", *one).at(at).value == pytest.approx(line("b", *other).at(at).value, rel=1e-9)


def test_nothing_is_said_of_what_cannot_be_compared() -> None:
    assert crossing(line("a", 1.0, None), line("b", 2.0, 1.0)) is None  # unknown
    assert crossing(line("a", 1.0, 2.0), line("b", 2.0, 1.0, unit="USD")) is None  # no rate of exchange is guessed
    assert crossing(line("a", 1.0, 2.0), line("b", 1.0, 2.0)) is None  # one line


def test_where_the_bands_overlap_it_is_open() -> None:
    # meter is 1.1: a's top is 1.1 + 2.2 N, b's bottom 10/1.1 + N/1.1: they meet at (10/1.1 - 1.1) / (2.2 - 1/1.1)
    found = crossing(line("a", 1.0, 2.0), line("b", 10.0, 1.0))
    assert found is not None and found.at == pytest.approx(9.0)
    assert found.open_from == pytest.approx((10 / 1.1 - 1.1) / (2.2 - 1 / 1.1), rel=1e-9)
    assert found.open_to == pytest.approx((11 - 1 / 1.1) / (2 / 1.1 - 1.1), rel=1e-9)
    guessed = crossing(line("a", 1.0, 2.0, grade="guess"), line("b", 10.0, 1.0, grade="guess"))
    assert guessed is not None and guessed.open_to is None  # a factor of two each: open for ever
    apart = crossing(line("a", 1.0, 1.0), line("b", 10.0, 10.0))
    assert apart is not None and (apart.at, apart.open_from, apart.open_to) == (None, None, None)


def test_a_sum_has_the_worst_grade_of_what_counts() -> None:
    whole = sum_amounts([Amount.graded(10.0, "J", "counter"), Amount.graded(4.0, "J", "guess")])
    assert (whole.value, whole.grade) == (14.0, "guess")
    assert (whole.low, whole.high) == (pytest.approx(10 / 1.05 + 2), pytest.approx(10.5 + 8))
    assert sum_amounts([Amount.graded(10.0, "J", "counter"), Amount.graded(0.0, "J", "guess")]).grade == "counter"
    assert sum_amounts([Amount.graded(10.0, "J", "counter"), Amount.graded(None, "J", "guess")]).value is None
