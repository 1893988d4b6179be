"""Mean reciprocal rank of the highest-ranked right candidate (Voorhees 1999, TREC-8).

1 where a right candidate is ranked first, 1/2 where second, …; queries without one are excluded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.ranks import as_high, marks_and_scores


def reciprocal_ranks(targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
    """Candidates' marks and scores (W, 2) -> (N, 2): reciprocal rank and 1, or 0 and 0 without a right candidate.

    Raises `ConfigError` for anything but candidates.
    """
    rows = []
    for right, scores in marks_and_scores(targets, predictions, task, "mean_reciprocal_rank"):
        above = as_high(scores[right].max(keepdims=True), scores[~right]) if right.any() else np.zeros(1)
        rows.append((1 / (1 + int(above[0])), 1.0) if right.any() else (0.0, 0.0))
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


metrics.register("mean_reciprocal_rank")(RatioScore(reciprocal_ranks))
