"""F1 of answers: word overlap of each answer with the most similar gold answer, averaged over questions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.answer_scores import words_f1
from graftwork.targets.answer_texts import likeness


class SpanF1:
    """Equal to F1 of the official SQuAD 1.1 evaluation; of 2.0 where some questions have no answer."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Answers -> (N, 1), 0 … 1. Raises `ConfigError` for anything else."""
        return likeness(targets, predictions, task, "span_f1", words_f1)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) -> (…)."""
        return means[..., 0]


metrics.register("span_f1")(SpanF1())
