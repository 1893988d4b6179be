"""Entity F1: the harmonic mean of precision and recall of spans, read strictly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio
from graftwork.targets.tag_spans import span_counts


class EntityF1:
    """Equal to `seqeval.metrics.f1_score(mode="strict", scheme=IOB2)`: an I- that continues nothing is no span."""

    def statistics(self, targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
        """Tags per word -> (N, 2): 2 x correct spans, true + predicted ones. Raises `ConfigError` for anything else."""
        return span_counts(targets, predictions, task, "entity_f1", strict=True)

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 2) -> (…)."""
        return ratio(means[..., 0], means[..., 1])


metrics.register("entity_f1")(EntityF1())
