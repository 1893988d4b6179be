"""Warnings about labels: read as they stand, and hardly meant so."""

from __future__ import annotations

import pytest

from graftwork.core.task import Task
from graftwork.data.checks.label_checks import label_warnings


def warned(kind: str, counts: dict[str, int], rows: int) -> str:
    splits = dict.fromkeys(("train", "validation", "test"), counts)
    found = {"classes": splits, "rows": dict.fromkeys(splits, rows), "rare_classes": {}, "label_in_text": 0.0}
    return " ".join(label_warnings(found, Task("t", "t.csv", kind=kind, labels=tuple(counts))))


@pytest.mark.parametrize("label", ["-1", "-", " ? "])
def test_a_label_that_often_means_none(label: str) -> None:
    assert "marks rows without a label" in warned("classification", {"yes": 30, "no": 30, label: 12}, 72)
    assert warned("classification", {"yes": 30, "no": 30, "1": 12}, 72) == ""


def test_a_label_of_every_row() -> None:
    assert "'urgent' is on every row of train" in warned("multilabel", {"urgent": 40, "billing": 20}, 40)
    assert warned("multilabel", {"urgent": 39, "billing": 20}, 40) == ""


def test_labels_that_look_like_lists() -> None:
    lists = {"a": 10, "a, b": 10, "a, c": 10, "b, c": 10}
    assert "look like lists" in warned("multilabel", lists, 40)
    assert warned("multilabel", {"a": 10, "b": 10, "Crime, Law": 10, "Food, Drink": 10}, 40) == ""
