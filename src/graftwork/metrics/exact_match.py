"""Exact match: the share of answers equal to a gold answer, up to case, punctuation and articles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.answer_scores import exact_match
from graftwork.targets.answer_texts import likeness


class ExactMatch:
    """Equal to exact match of the official SQuAD 1.1 evaluation; of 2.0 where some questions have no answer."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Answers -> (N, 1), 1 where correct. Raises `ConfigError` for anything else."""
        return likeness(targets, predictions, task, "exact_match", exact_match)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) -> (…)."""
        return means[..., 0]


metrics.register("exact_match")(ExactMatch())
