"""Who is on the frontier, and who is not considered."""

from __future__ import annotations

from typing import Any

import pytest

from graftwork.compare.frontier import Point, frontier, points
from graftwork.compare.sentences import cost_name
from graftwork.core.meter import Meaning
from graftwork.registry import meters


def row(method: str, score: float | None, cost: float | None, status: str = "ok") -> dict[str, Any]:
    return {
        "method": method,
        "status": status,
        "scores": {} if score is None else {"accuracy": {"mean": score}},
        "costs": {"train_seconds": {"value": cost}, "predict_per_second": {"value": cost}},
    }


def test_dominated_points_are_left_out() -> None:
    assert frontier([Point("a", 0.9, 10), Point("b", 0.8, 20), Point("c", 0.7, 1)]) == ["c", "a"]


def test_equal_points_are_all_kept() -> None:
    assert frontier([Point("a", 0.9, 10), Point("b", 0.9, 10)]) == ["a", "b"]


def test_the_cheaper_of_two_equal_scores_and_the_better_of_two_equal_costs() -> None:
    assert frontier([Point("a", 0.9, 10), Point("b", 0.9, 9)]) == ["b"]
    assert frontier([Point("a", 0.9, 10), Point("b", 0.8, 10)]) == ["a"]


def test_nothing_gives_nothing() -> None:
    assert frontier([]) == []


def test_unknown_costs_and_failed_rows_are_left_out() -> None:
    rows = [row("a", 0.9, 1), row("b", 0.95, None), row("c", None, 1, "failed"), row("d", 0.99, 0.1, "dropped")]
    assert [point.name for point in points(rows, "accuracy")] == ["a"]
    assert points(rows, "f1") == []


def test_failed_runs_count_as_they_do_in_the_order_of_the_rows() -> None:
    rows = [row("sure", 0.85, 1), row("lucky", 0.9, 2) | {"counted": 0.7}, row("best", 0.95, 3) | {"counted": 0.95}]
    assert frontier(points(rows, "accuracy")) == ["sure", "best"]


def test_scores_that_only_the_order_of_adding_up_tells_apart_are_equal() -> None:
    assert frontier(points([row("a", 0.8, 10), row("b", 0.7 + 0.1, 9)], "accuracy")) == ["b"]


def test_more_predictions_per_second_are_better() -> None:
    rows = [row("slow", 0.8, 10), row("quick", 0.8, 100)]
    assert frontier(points(rows, "accuracy", "predict_per_second")) == ["quick"]


def test_a_meter_says_that_more_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untroubled:
        needs = ()
        meaning = Meaning("days without a fault", more_is_better=True)

    monkeypatch.setitem(meters._parts, "days", Untroubled)
    rows = [
        row("weak", 0.8, 1) | {"costs": {"days": {"value": 1}}},
        row("sound", 0.8, 1) | {"costs": {"days": {"value": 9}}},
    ]
    assert frontier(points(rows, "accuracy", "days")) == ["sound"]
    assert cost_name("days") == "days without a fault"
