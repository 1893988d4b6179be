"""CoNLL F1: the harmonic mean of precision and recall of spans, as read by the script of the CoNLL shared tasks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.tag_spans import span_counts


class ConllF1:
    """Equal to FB1 of `conlleval`, and to seqeval's default mode: an I- that continues nothing begins a span."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Tags per word -> (N, 2): 2 x correct spans, true + predicted ones. Raises `ConfigError` for anything else."""
        return span_counts(targets, predictions, task, "conll_f1", strict=False)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 2) -> (…)."""
        return ratio(means[..., 0], means[..., 1])


metrics.register("conll_f1")(ConllF1())
