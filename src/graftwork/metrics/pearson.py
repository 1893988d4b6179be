"""Pearson's correlation of predicted and true numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.correlation import correlation, moments, require_numbers


class Pearson:
    """Equal to `scipy.stats.pearsonr`; 0 for constant predictions."""

    least = -1.0

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) numbers -> (N, 5), the `moments` of targets and predictions. Raises `ConfigError` for anything else."""
        return moments(require_numbers(targets, task, "pearson"), require_numbers(predictions, task, "pearson"))

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 5) -> (…)."""
        return correlation(means)


metrics.register("pearson")(Pearson())
