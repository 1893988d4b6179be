"""The floor of a board: the score of the majority class, computed even if that method does not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from graftwork.core.kind import WritesTexts
from graftwork.core.metric import score_of
from graftwork.core.task import Dataset
from graftwork.module.thresholds import constant_answers
from graftwork.registry import kinds, metrics

MAJORITY = "majority"  # name of the method


@dataclass(frozen=True)
class Floor:
    """The scores of the majority class: failed runs count as these, and a run below them has learned nothing."""

    test: Mapping[str, NDArray[Any]]  # metric -> (N, K) per-example statistics on the test split
    validation: Mapping[str, float]  # metric -> score on validation


def floor_name(task: Mapping[str, Any]) -> str:
    """Return the name of a task's best constant prediction, which `majority` makes. `task` is in its JSON form."""
    kind = task.get("kind")
    if task.get("costs") is not None:
        return "the cheapest constant answer"
    return "the most frequent text" if kind and isinstance(kinds.get(kind), WritesTexts) else "the majority class"


def floor_of(dataset: Dataset) -> Floor:
    """Compute the floor from the predictions of `majority`: the most frequent class of train, or its mean, with
    thresholds chosen as for any method."""
    task, train, validation = dataset.task, dataset.train, dataset.validation
    statistics = {}
    for split in (validation, dataset.test):
        answers = constant_answers(task, train.targets, validation.targets, split.targets)
        statistics[split.name] = {
            name: metrics.get(name).statistics(split.targets, answers, task) for name in task.metrics
        }
    scores = {name: score_of(metrics.get(name), rows) for name, rows in statistics["validation"].items()}
    return Floor(statistics["test"], scores)
