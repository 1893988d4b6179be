"""Saved cost: by hand, and in relation to accuracy where mistakes cost the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.registry import kinds, metrics

METRIC = metrics.get("saved_cost")
PLAIN = kinds.get("classification").resolve(Task("t", Path("t.csv")), ["a", "b", "b"])
DEAR = PLAIN.resolved(costs={"a": {"a": 0.0, "b": 10.0}, "b": {"a": 1.0, "b": 0.0}})


def test_by_hand() -> None:
    targets, predicted = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 0])
    assert score(METRIC, targets, predicted, DEAR) == pytest.approx(1 - 2 / 3)  # always a costs 3, always b 10
    assert score(METRIC, targets, np.zeros(4, int), DEAR) == 0
    assert score(METRIC, targets, np.ones(4, int), DEAR) == -1, "three times as dear: no lower than -1"
    assert score(METRIC, np.ones(4, int), predicted, DEAR) == 0, "nothing to be saved"


def test_equal_costs_are_errors() -> None:
    random = np.random.default_rng(0)
    targets, predicted = random.integers(0, 2, 50), random.integers(0, 2, 50)
    error, majority = (targets != predicted).mean(), min(targets.mean(), 1 - targets.mean())
    assert score(METRIC, targets, predicted, PLAIN) == pytest.approx(max(-1, 1 - error / majority))
