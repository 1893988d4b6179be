"""The score of a method's outputs for a split, and a record of those among which the method keeps the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import Logits, Setting, Workbench
from graftwork.core.metric import score_of
from graftwork.core.task import Split
from graftwork.registry import metrics


@dataclass(frozen=True)
class Scorer:
    """The score of outputs for a split by one metric of the task."""

    metric: str
    setting: Setting
    split: Split
    tried: list[NDArray[Any]] | None = None  # the metric's statistics (N, K) of what was scored; None: no record

    def __call__(self, logits: Logits, examples: NDArray[np.int64] | None = None) -> float:
        """Return the score of the outputs for all examples of the split, or for some; higher is better."""
        metric, predictions = metrics.get(self.metric), self.setting.kind.predictions(logits, self.setting.task)
        targets = self.split.targets if examples is None else self.split.targets[examples]
        statistics = metric.statistics(targets, predictions, self.setting.task)
        if examples is None and self.tried is not None:
            self.tried.append(statistics)
        return score_of(metric, statistics)


def tried_in(bench: Workbench) -> list[NDArray[Any]]:
    """Return the record of what was scored in a workbench, to read, extend or clear; a new list if it has none."""
    recorded = bench.score.tried if isinstance(bench.score, Scorer) else None
    return [] if recorded is None else recorded
