"""Macro F1: the unweighted mean of the classes' F1, so that a rare class counts as much as a frequent one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import indicators, ratio


class MacroF1:
    """Equal to `sklearn.metrics.f1_score(average="macro", zero_division=0)`.

    As there, a class that occurs neither in the targets nor in the predictions is left out of the average, and a
    label of a multilabel task that occurs in neither counts 0.
    """

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.int8]:
        """(N,) classes or (N, C) labels -> (N, 3C): 2 x hits, targets + predictions, and whether the class counts.

        The values are 0, 1 and 2, in one byte each: with many classes they take most of a board's memory.
        """
        actual, predicted = indicators(targets, task, "macro_f1"), indicators(predictions, task, "macro_f1")
        counts = np.ones_like(actual) if targets.ndim == 2 else actual | predicted
        hits, sums = 2 * (actual & predicted).astype(np.int8), actual.astype(np.int8) + predicted
        return np.concatenate([hits, sums, counts], axis=1)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 3C) -> (…)."""
        hits, sums, counts = np.split(means, 3, axis=-1)
        return ratio(ratio(hits, sums).sum(axis=-1), (counts > 1e-12).sum(axis=-1).astype(np.float64))


metrics.register("macro_f1")(MacroF1())
