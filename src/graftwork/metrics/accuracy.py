"""Accuracy: the share of correct predictions; with several labels per example, of exact matches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import indicators, ratio
from graftwork.targets.ranks import marks_and_scores


class Accuracy:
    """Equal to `sklearn.metrics.accuracy_score`; computed over all words where each has a label."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """(N,) classes or (N, C) labels -> (N, 1): 1 if correct. Tags per word -> (N, 2): correct words, all words.
        Marks and scores of choices (W, 2) -> (N, 1): 1 if the choice with the highest score, first in a tie, is right.

        Raises `ConfigError` for numbers and answer spans.
        """
        if isinstance(targets, Ragged) and isinstance(predictions, Ragged):
            if targets.flat.ndim == 1:
                right = targets.sums(targets.flat == predictions.flat)
                return np.stack([right, targets.counts.astype(np.float64)], axis=1)
            if targets.about is None:
                found = marks_and_scores(targets, predictions, task, "accuracy")
                return np.array([[right[scores.argmax()]] for right, scores in found], dtype=np.float64)
        same = indicators(targets, task, "accuracy") == indicators(predictions, task, "accuracy")
        return np.asarray(same.all(axis=1, keepdims=True), dtype=np.float64)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) or (…, 2) -> (…)."""
        return means[..., 0] if means.shape[-1] == 1 else ratio(means[..., 0], means[..., 1])


metrics.register("accuracy")(Accuracy())
