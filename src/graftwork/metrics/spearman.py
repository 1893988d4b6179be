"""Spearman's rank correlation of predicted and true numbers (Spearman 1904)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.correlation import correlation, moments, require_numbers


class Spearman:
    """Equal to `scipy.stats.spearmanr` on the whole sample; 0 for constant predictions.

    A bootstrap of the statistics keeps the ranks in the whole sample and does not rank each resample again. This is a
    close approximation from about a hundred examples on.
    """

    least = -1.0

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) numbers -> (N, 5), the `moments` of their ranks. Raises `ConfigError` for anything else."""
        numbers = (require_numbers(values, task, "spearman") for values in (targets, predictions))
        return moments(*(rankdata(values) for values in numbers))

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 5) -> (…)."""
        return correlation(means)


metrics.register("spearman")(Spearman())
