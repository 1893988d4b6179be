"""The floor of a board: what the majority class's answer scores, whether or not that method runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import Setting
from graftwork.core.ragged import added, repeated
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.thresholds import thresholds_of

MAJORITY = "majority"  # the method


@dataclass(frozen=True)
class Floor:
    """What a run that failed counts as, and below what a run has learnt nothing."""

    test: Mapping[str, NDArray[Any]]  # metric -> (N, K) per-example statistics on the test split
    validation: Mapping[str, float]  # metric -> score on validation


def floor_of(dataset: Dataset) -> Floor:
    """The answers of the method `majority`: the most frequent class of train, or its mean, thresholds as for any."""
    task, train, validation = dataset.task, dataset.train, dataset.validation
    kind = kinds.get(task.kind)
    answer = kind.constant(train.targets, task)  # (C,), or (places, C)
    logits = {split.name: repeated(answer, split.examples) for split in (validation, dataset.test)}
    thresholds = thresholds_of(Setting(task, kind, None), logits["validation"], validation.targets)
    statistics = {
        split: {
            name: metrics.get(name).statistics(
                dataset.splits[split].targets,
                kind.predictions(rows if thresholds is None else added(rows, thresholds), task),
                task,
            )
            for name in task.metrics
        }
        for split, rows in logits.items()
    }
    scores = {
        name: float(metrics.get(name).value(np.asarray(rows, np.float64).mean(axis=0)))
        for name, rows in statistics["validation"].items()
    }
    return Floor(statistics["test"], scores)
