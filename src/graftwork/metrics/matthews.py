"""Matthews' correlation coefficient of classes (Matthews 1975; for more than two classes Gorodkin 2004)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import indicators, ratio, require_classes


class Matthews:
    """Equal to `sklearn.metrics.matthews_corrcoef`."""

    least = -1.0

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.int8]:
        """(N,) classes -> (N, 1 + 2C) of 0 and 1: correct or not, one-hot target, one-hot prediction."""
        require_classes(targets, task, "matthews")
        actual, predicted = indicators(targets, task, "matthews"), indicators(predictions, task, "matthews")
        right = (targets == predictions)[:, None]
        return np.concatenate([right, actual, predicted], axis=1).astype(np.int8)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1 + 2C) -> (…)."""
        right = means[..., 0]
        actual, predicted = np.split(means[..., 1:], 2, axis=-1)
        chance = (actual * predicted).sum(axis=-1)
        spreads = [np.maximum(1 - (share * share).sum(axis=-1), 0) for share in (actual, predicted)]
        constant = np.minimum(*spreads) < 1e-12  # zero up to rounding: one other example in 10^9 gives more
        return np.where(constant, 0.0, ratio(right - chance, np.sqrt(spreads[0] * spreads[1])))


metrics.register("matthews")(Matthews())
