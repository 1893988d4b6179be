"""Mean average precision: ranking quality over all right candidates of each query.

The mean of `sklearn.metrics.average_precision_score` over the queries that have a right candidate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.ragged import Numbers
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.mean_scores import RatioScore
from graftwork.targets.ranks import as_high, marks_and_scores


def average_precisions(targets: Numbers, predictions: Numbers, task: Task) -> NDArray[np.float64]:
    """Candidates' marks and scores (W, 2) -> (N, 2): average precision and 1, or 0 and 0 without a right candidate.

    Raises `ConfigError` for anything but candidates.
    """
    rows = []
    for right, scores in marks_and_scores(targets, predictions, task, "mean_average_precision"):
        wanted = scores[right]
        precisions = as_high(wanted, wanted) / as_high(wanted, scores)
        rows.append((precisions.mean(), 1.0) if len(wanted) else (0.0, 0.0))
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


metrics.register("mean_average_precision")(RatioScore(average_precisions))
