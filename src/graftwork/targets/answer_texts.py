"""Encoded answers decoded to texts, and their similarity to the right answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.targets.passages import Golds
from graftwork.targets.text_scores import are_texts, references_and_texts

Like = Callable[[Sequence[str], str, bool], float]  # (right texts, predicted text, may have no answer) -> score


def likeness(targets: Numbers, predictions: Numbers, task: Task, metric: str, like: Like) -> NDArray[np.float64]:
    """Return the similarity (N, 1) of each predicted answer to the right ones, by `like`.

    Answers are written texts, or rows (is start, is end, …), the first row for "no answer". Raises `ConfigError` naming
    the `metric` for anything else.
    """
    if are_texts(targets) and are_texts(predictions):
        pairs = zip(*references_and_texts(targets, predictions, task, metric), strict=True)
        return np.array([like(golds, text, False) for golds, text in pairs], dtype=np.float64).reshape(-1, 1)
    if not isinstance(targets, Ragged) or not isinstance(predictions, Ragged) or targets.about is None:
        raise unscorable(metric, "texts and stretches of a text", task)
    texts = zip(targets.about, found_texts(predictions, targets.about), strict=True)
    scores = [like(golds.texts, text, task.settings.unanswerable) for golds, text in texts]
    return np.array(scores, dtype=np.float64).reshape(-1, 1)


def found_texts(predictions: Ragged, about: Sequence[Golds] | NDArray[np.object_]) -> list[str]:
    """Return the text of each prediction: a span of its passage, or empty for "no answer"."""
    first = predictions.starts
    starts, ends = (np.flatnonzero(predictions.flat[:, column]) - first for column in (0, 1))  # each (N,)
    return [
        golds.passage.between(start - 1, end - 1) if start > 0 else ""
        for golds, start, end in zip(about, starts.tolist(), ends.tolist(), strict=True)
    ]
