"""Means over tasks: of tasks, not of columns; over seeds that all have; never of what is not there."""

from __future__ import annotations

import pytest

from graftwork.benchmark.published_scores import (
    PublishedEntry,
    best_on_validation,
    geometric_mean,
    of_published,
    over_tasks,
)


def entry(scores: dict[str, dict[int, float]], validation: float = 0.5, method: str = "m") -> PublishedEntry:
    return PublishedEntry(method, "ok" if scores else "dropped", scores, validation, {})


def test_a_task_with_two_scores_counts_once() -> None:
    two = entry({"MRPC f1": {0: 0.8, 1: 0.9}, "MRPC accuracy": {0: 0.6, 1: 0.7}})
    single = entry({"CoLA matthews": {0: 0.1, 1: 0.2}})
    whole = over_tasks([two, single])
    assert whole["mean"]["mean"] == pytest.approx((0.75 + 0.15) / 2)
    assert whole["mean"]["sd"] == pytest.approx(((0.5 - 0.4) / 2**0.5) ** 1)
    assert whole["geometric_mean"] == pytest.approx((0.75 * 0.15) ** 0.5)


def test_only_seeds_that_every_task_has() -> None:
    whole = over_tasks([entry({"a x": {0: 0.2, 1: 0.4}}), entry({"b x": {1: 0.6, 2: 0.0}})])
    assert whole["mean"] == {"mean": pytest.approx(0.5), "sd": 0.0, "seeds": 1}
    assert over_tasks([entry({"a x": {0: 0.2}}), entry({})]) == {}
    assert over_tasks([]) == {}


def test_geometric_mean_at_and_below_zero() -> None:
    assert geometric_mean([0.5, 0.0]) == 0
    assert geometric_mean([0.5, -0.1]) is None


def test_the_choice_is_made_on_validation() -> None:
    dropped, low = entry({}, float("nan"), "a"), entry({"x y": {0: 0.99}}, 0.1, "b")
    high, equal = entry({"x y": {0: 0.01}}, 0.9, "d"), entry({"x y": {0: 0.5}}, 0.9, "c")
    chosen = best_on_validation([dropped, low, high, equal])
    assert chosen is not None
    assert chosen.method == "c"
    assert best_on_validation([dropped]) is None


def test_published_means_need_every_column() -> None:
    tasks = {"MRPC": ["MRPC f1", "MRPC accuracy"], "RTE": ["RTE accuracy"]}
    assert of_published({"MRPC f1": 90.0, "RTE accuracy": 70.0}, tasks) == {}
    whole = of_published({"MRPC f1": 90.0, "MRPC accuracy": 80.0, "RTE accuracy": 70.0}, tasks)
    assert whole["mean"]["mean"] == pytest.approx(0.775)
