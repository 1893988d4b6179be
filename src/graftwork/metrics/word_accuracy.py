"""Word accuracy: 1 minus the word error rate (WER), the edits that turn what was written into the reference, for each
word of it (Hunt 1990, doi:10.1016/0167-6393(90)90009-L)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.text_scores import edit_statistics


class WordAccuracy:
    """1 - `jiwer.wer` of all texts in lower case, without punctuation. Below 0 where errors outnumber words."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Texts -> (N, 2): the edits, and the words of the reference. Raises `ConfigError` for anything else."""
        return edit_statistics("word_accuracy", str.split, targets, predictions, task)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 2) -> (…)."""
        return 1.0 - ratio(means[..., 0], means[..., 1])


metrics.register("word_accuracy")(WordAccuracy())
