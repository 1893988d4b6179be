"""Metrics that are a mean over examples, or the ratio of two means, of what a function counts in each example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.targets.indicators import ratio

Counts = Callable[..., NDArray[np.float64]]
# encoded targets, predictions, the task -> statistics (N, K); raises `ConfigError` for a task that it can't count


@dataclass(frozen=True)
class MeanScore:
    """The mean of `counts` (N, 1). Implements `Metric`."""

    counts: Counts

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Return `counts` (N, 1). Raises `ConfigError` for a task that it can't count."""
        return self.counts(targets, predictions, task)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (…) of means (…, 1)."""
        return means[..., 0]


@dataclass(frozen=True)
class RatioScore:
    """The ratio of the means of the two columns of `counts` (N, 2), 0 for a zero denominator. Implements `Metric`."""

    counts: Counts
    of_errors: bool = False  # True: the score is 1 minus the ratio

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Return `counts` (N, 2). Raises `ConfigError` for a task that it can't count."""
        return self.counts(targets, predictions, task)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (…) of means (…, 2)."""
        found = ratio(means[..., 0], means[..., 1])
        return 1.0 - found if self.of_errors else found
