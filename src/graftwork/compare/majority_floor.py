"""The floor of a board: what the majority class's answer scores, whether or not that method runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Dataset
from graftwork.module.thresholds import constant_answers
from graftwork.registry import metrics

MAJORITY = "majority"  # the method


@dataclass(frozen=True)
class Floor:
    """What a run that failed counts as, and below what a run has learnt nothing."""

    test: Mapping[str, NDArray[Any]]  # metric -> (N, K) per-example statistics on the test split
    validation: Mapping[str, float]  # metric -> score on validation


def floor_of(dataset: Dataset) -> Floor:
    """The answers of the method `majority`: the most frequent class of train, or its mean, thresholds as for any."""
    task, train, validation = dataset.task, dataset.train, dataset.validation
    statistics = {}
    for split in (validation, dataset.test):
        answers = constant_answers(task, train.targets, validation.targets, split.targets)
        statistics[split.name] = {
            name: metrics.get(name).statistics(split.targets, answers, task) for name in task.metrics
        }
    scores = {
        name: float(metrics.get(name).value(np.asarray(rows, np.float64).mean(axis=0)))
        for name, rows in statistics["validation"].items()
    }
    return Floor(statistics["test"], scores)
