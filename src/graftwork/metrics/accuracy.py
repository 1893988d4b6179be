"""Accuracy: the share of examples that are answered right; for several labels, answered exactly right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.indicators import indicators
from graftwork.core.task import Task
from graftwork.registry import metrics


class Accuracy:
    """Equal to `sklearn.metrics.accuracy_score`."""

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) classes or (N, C) labels -> (N, 1), 1 where right. Raises `ConfigError` for numbers."""
        same = indicators(targets, task, "accuracy") == indicators(predictions, task, "accuracy")
        return np.asarray(same.all(axis=1, keepdims=True), dtype=np.float64)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) -> (…)."""
        return means[..., 0]


metrics.register("accuracy")(Accuracy())
