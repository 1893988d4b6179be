"""F1 of the positive class: the harmonic mean of its precision and recall.

Equal to `sklearn.metrics.f1_score(pos_label=task.settings.positive, zero_division=0)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task, positive_of
from graftwork.errors import ConfigError
from graftwork.registry import metrics
from graftwork.targets.indicators import require_classes
from graftwork.targets.mean_scores import RatioScore


def of_positive(targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task) -> NDArray[np.float64]:
    """Map (N,) classes to (N, 2): 2 x hits, targets + predictions. Raises `ConfigError` without a positive class."""
    require_classes(targets, task, "f1")
    name = positive_of(task)
    if name is None:
        raise ConfigError(
            "the metric 'f1' needs a positive class: the task has more than two",
            do=f"use macro_f1, or choose --positive from {', '.join(task.labels)}",
        )
    positive = task.labels.index(name)
    actual, predicted = targets == positive, predictions == positive
    return np.stack([2.0 * (actual & predicted), actual.astype(np.float64) + predicted], axis=1)


metrics.register("f1")(RatioScore(of_positive))
