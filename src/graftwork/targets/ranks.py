"""Counts for ranking metrics: how many other candidates of an example score at least as high as one of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task


def marks_and_scores(
    targets: Numbers, predictions: Numbers, task: Task, metric: str
) -> list[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """Return, per example, which candidates are right and all scores; encoded targets and predictions are (W, 2).

    Raises `ConfigError` where examples have no candidates, naming the `metric` that cannot score them.
    """
    if not (isinstance(targets, Ragged) and isinstance(predictions, Ragged) and targets.flat.shape[1:] == (2,)):
        raise unscorable(metric, "candidates", task)
    return [
        (marks[:, 0] != 0, np.asarray(scores[:, 0], dtype=np.float64))
        for marks, scores in zip(targets, predictions, strict=True)
    ]


def as_high(of: NDArray[np.float64], among: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count, for scores (n,), how many of the others (m,) are at least as high -> (n,).

    So among equal scores the wrong ones rank first, and the order of a file has no effect.
    """
    ordered = np.sort(among)
    return np.asarray(len(ordered) - np.searchsorted(ordered, of, side="left"), dtype=np.int64)
