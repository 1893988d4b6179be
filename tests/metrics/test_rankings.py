"""The metrics of rankings equal scikit-learn's and a count by hand, query by query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from graftwork.core.metric import score
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import metrics
from graftwork.targets.choices import encode_marks

TASK = Task("t", Path("t"), kind="ranking")
MAP, MRR = (metrics.get(f"mean_{name}") for name in ("average_precision", "reciprocal_rank"))


def scored(scores: list[list[float]]) -> Ragged:
    """Predictions: a score per candidate, and its query's number."""
    return Ragged.of([[(score, number) for score in row] for number, row in enumerate(scores)], np.float64)


def reciprocal_rank(marks: list[int], scores: list[float]) -> float:
    """By sorting, the wrong ones of equal scores first."""
    order = sorted(zip(scores, marks, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return 1 / (1 + [mark for _, mark in order].index(1))


@pytest.mark.parametrize("grades", [4, 10_000])
def test_against_scikit_learn_and_by_hand(grades: int) -> None:
    """With four grades most scores are tied."""
    random = np.random.default_rng(grades)
    marks, scores = [], []
    for _ in range(200):
        count = int(random.integers(2, 15))
        row = (random.random(count) < 0.4).astype(int)
        row[random.integers(count)] = 1
        marks.append(row.tolist())
        scores.append((random.integers(0, grades, count) / grades + 0.3 * row).tolist())
    targets, predictions = encode_marks(marks), scored(scores)
    precisions = [average_precision_score(row, given) for row, given in zip(marks, scores, strict=True)]
    ranks = [reciprocal_rank(row, given) for row, given in zip(marks, scores, strict=True)]
    assert score(MAP, targets, predictions, TASK) == pytest.approx(np.mean(precisions), abs=1e-12)
    assert score(MRR, targets, predictions, TASK) == pytest.approx(np.mean(ranks), abs=1e-12)
    assert MAP.statistics(targets, predictions, TASK)[:, 0] == pytest.approx(precisions)


def test_queries_without_a_relevant_candidate_are_left_out() -> None:
    targets, predictions = encode_marks([[0, 1], [0, 0, 0], [1, 0]]), scored([[1.0, 0.0], [3.0, 2.0, 1.0], [2.0, 1.0]])
    assert score(MAP, targets, predictions, TASK) == score(MRR, targets, predictions, TASK) == pytest.approx(0.75)
    nothing = encode_marks([[0, 0]])
    assert score(MAP, nothing, scored([[1.0, 0.0]]), TASK) == 0


def test_the_order_of_a_file_helps_nobody() -> None:
    """A model that tells nothing apart scores as if the relevant candidates came last."""
    targets = encode_marks([[1, 0, 0, 0]])
    assert score(MRR, targets, scored([[0.5] * 4]), TASK) == 0.25
    assert score(MAP, targets, scored([[0.5] * 4]), TASK) == 0.25


@pytest.mark.parametrize("metric", [MAP, MRR])
def test_classes_are_refused(metric: object) -> None:
    with pytest.raises(ConfigError, match="scores candidates"):
        metric.statistics(np.array([0, 1]), np.array([0, 1]), TASK)  # type: ignore[attr-defined]


def test_accuracy_is_that_of_the_first_of_the_highest() -> None:
    targets = encode_marks([[0, 1], [1, 0, 0], [0, 1]])
    predictions = scored([[0.1, 0.2], [0.5, 0.5, 0.1], [0.5, 0.5]])
    assert metrics.get("accuracy").statistics(targets, predictions, TASK).tolist() == [[1.0], [1.0], [0.0]]
