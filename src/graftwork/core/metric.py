"""A metric: a function of the mean of per-example statistics, so that bootstraps are one matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task


class Metric(Protocol):
    """Higher is better. `value(statistics(…).mean(0))` is the score."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Encoded targets and predictions of N examples -> (N, K)."""

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, K) means over a sample of examples -> (…) scores; undefined ones are 0, as in scikit-learn."""


@runtime_checkable
class BelowZero(Protocol):
    """What a metric is too whose scores go below 0."""

    least: float  # the lowest score there is


def score(metric: Metric, targets: Numbers, predictions: Numbers, task: Task) -> float:
    """One number for one set of predictions."""
    return float(metric.value(metric.statistics(targets, predictions, task).mean(axis=0)))


@dataclass(frozen=True)
class Score:
    """A score over seeds, with its interval over seeds and examples. Fractions, not points."""

    mean: float
    sd: float  # over seeds; 0 with one seed
    low: float  # 95 % interval
    high: float
