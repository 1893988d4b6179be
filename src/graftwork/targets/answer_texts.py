"""Encoded answers as texts: what a prediction says, beside the texts that are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.targets.passages import Golds

Like = Callable[[Sequence[str], str, bool], float]  # the right texts, the text found, whether there may be no answer


def likeness(targets: Numbers, predictions: Numbers, task: Task, metric: str, like: Like) -> NDArray[np.float64]:
    """(N, 1): how like each predicted answer is to the right ones.

    Rows of a prediction are (is start, is end, …), the first row for "no answer". Raises `ConfigError` naming the
    `metric` where answers are no stretches of a text.
    """
    if not isinstance(targets, Ragged) or not isinstance(predictions, Ragged) or targets.about is None:
        raise unscorable(metric, "stretches of a text", task)
    texts = zip(targets.about, found_texts(predictions, targets.about), strict=True)
    scores = [like(golds.texts, text, task.unanswerable) for golds, text in texts]
    return np.array(scores, dtype=np.float64).reshape(-1, 1)


def found_texts(predictions: Ragged, about: Sequence[Golds] | NDArray[np.object_]) -> list[str]:
    """What each prediction says: a stretch of its passage, or nothing."""
    first = predictions.starts
    starts, ends = (np.flatnonzero(predictions.flat[:, column]) - first for column in (0, 1))  # each (N,)
    return [
        golds.passage.between(start - 1, end - 1) if start > 0 else ""
        for golds, start, end in zip(about, starts.tolist(), ends.tolist(), strict=True)
    ]
