"""The expected best of n tries, against every way to draw them."""

from __future__ import annotations

import itertools
import statistics

import pytest

from graftwork.compare.expected_best import curve, expected_best
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult


def run(seed: int, score: float | None, seconds: float | None = 10.0) -> RunResult:
    status = "failed" if score is None else "ok"
    validation = {} if score is None else {"accuracy": score}
    return RunResult(
        str(seed), seed, status, validation=validation, costs={"train_seconds": Cost(seconds, "s", "meter")}
    )


def test_it_is_the_mean_over_every_draw() -> None:
    scores = [0.7, 0.9, 0.4, 0.7]
    for n, found in enumerate(expected_best(scores), start=1):
        drawn = itertools.product(scores, repeat=n)
        assert found == pytest.approx(statistics.fmean(max(draw) for draw in drawn))


def test_a_curve_rises_from_the_mean_and_costs_what_its_tries_cost() -> None:
    points = curve([run(0, 0.8, 8.0), run(1, 0.9, 12.0), run(2, 0.85)], "accuracy", "train_seconds", None)
    assert [point["n"] for point in points] == [1, 2, 3]
    assert [point["cost"] for point in points] == [10.0, 20.0, 30.0]
    assert points[0]["score"] == pytest.approx(0.85)
    scores = [point["score"] for point in points]
    assert scores == sorted(scores) and scores[-1] < 0.9


def test_a_failed_try_is_paid_for_and_scores_the_floor() -> None:
    points = curve([run(0, 0.8), run(1, None), run(2, 0.9)], "accuracy", "train_seconds", 0.5)
    assert points[0]["score"] == pytest.approx((0.8 + 0.5 + 0.9) / 3)
    assert len(points) == 3
    without = curve([run(0, 0.8), run(1, None), run(2, 0.9)], "accuracy", "train_seconds", None)
    assert (len(without), without[0]["score"]) == (2, pytest.approx(0.85))


def test_where_there_is_nothing_to_draw() -> None:
    assert curve([run(0, 0.8)], "accuracy", "train_seconds", None) == []
    assert curve([run(0, 0.8), run(1, 0.8)], "accuracy", "train_seconds", None) == []
    assert curve([run(0, 0.8, None), run(1, 0.9, None)], "accuracy", "train_seconds", None) == []
    assert curve([run(0, 0.8), run(1, 0.9)], "f1", "train_seconds", None) == []
