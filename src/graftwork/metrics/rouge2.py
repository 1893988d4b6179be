"""ROUGE-2: F1 of the pairs of adjacent words that a written text shares with the reference most like it
(Lin 2004, aclanthology.org/W04-1013)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.text_scores import rouge_f1


class Rouge2:
    """Equal to the F-measure `rouge2` of Google's rouge-score without stemming, averaged over texts."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Texts -> (N, 1), 0 … 1. Raises `ConfigError` for anything else."""
        return rouge_f1("rouge2", "rouge2", targets, predictions, task)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) -> (…)."""
        return means[..., 0]


metrics.register("rouge2")(Rouge2())
