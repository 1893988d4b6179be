"""Costs and weights must name the labels of the task, and leave a choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds
from graftwork.targets.label_costs import cost_matrix

KIND = kinds.get("classification")
COSTS = {"b": {"b": 0, "a": 10}, "a": {"b": 1, "a": 0}}


def resolved(**settings: Any) -> Task:
    return KIND.resolve(Task("t", Path("t.csv"), settings=settings), ["a", "b", "a"])


def test_the_matrix_is_in_the_order_of_the_labels() -> None:
    assert cost_matrix(resolved(costs=COSTS)).tolist() == [[0, 1], [10, 0]]
    assert cost_matrix(resolved()).tolist() == [[0, 1], [1, 0]]


def test_costs_are_the_headline() -> None:
    assert resolved(costs=COSTS).metrics[:2] == ("saved_cost", "accuracy")
    named = Task("t", Path("t.csv"), metrics=("accuracy",), settings={"costs": COSTS})
    assert KIND.resolve(named, ["a", "b"]).metrics == ("accuracy",)


@pytest.mark.parametrize(
    ("settings", "what", "do"),
    [
        ({"class_weights": {"a": 1, "b": 2, "c": 3}}, "class_weights name 'c', which is no label", "letter by letter"),
        ({"class_weights": {"a": 1}}, "class_weights lack 'b'", "add 'b'"),
        ({"costs": {"a": {"a": 0, "B": 1}, "B": {"a": 1, "B": 0}}}, "costs name 'B', which is no label", "white space"),
        ({"costs": {"a": {"a": 0}}}, "costs lack 'b'", "add 'b'"),
        (
            {"costs": {"a": {"a": 0, "b": 0}, "b": {"a": 1, "b": 0}}},
            "the answer 'b' is the cheapest whatever",
            "rows are",
        ),
        (
            {"costs": {"a": {"a": 1, "b": 1}, "b": {"a": 1, "b": 1}}},
            "the answer 'a' is the cheapest whatever",
            "rows are",
        ),
        (
            {"costs": COSTS, "class_weights": "balanced"},
            "costs need the probabilities as they are",
            "leave class_weights",
        ),
    ],
)
def test_refused(settings: dict[str, Any], what: str, do: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(**settings)
    assert what in caught.value.what and do in caught.value.do


@pytest.mark.parametrize(("kind", "targets"), [("multilabel", [("a",), ("b",)]), ("tagging", [("a", "b")])])
def test_weights_of_other_kinds_are_checked_too(kind: str, targets: list[Any]) -> None:
    task = Task("t", Path("t.csv"), kind=kind, settings={"class_weights": {"a": 1, "c": 1}})
    with pytest.raises(ConfigError, match="name 'c'"):
        kinds.get(kind).resolve(task, targets)
    with pytest.raises(ConfigError, match="has no use for costs"):
        Task("t", Path("t.csv"), kind=kind, settings={"costs": COSTS})
