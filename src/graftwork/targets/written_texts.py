"""Written texts: what a network that writes answers with, beside how probable it found each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import WritesTexts
from graftwork.core.task import Task
from graftwork.registry import kinds

WRITTEN = np.dtype([("text", object), ("log_probability", np.float64), ("cut", np.bool_)])
# the text; the sum of its tokens' natural log-probabilities, its end's included; whether it was cut at the length limit


def written(texts: Sequence[str], log_probabilities: Sequence[float], cut: Sequence[bool]) -> NDArray[Any]:
    """Return (N,) of `WRITTEN`."""
    return np.array(list(zip(texts, log_probabilities, cut, strict=True)), dtype=WRITTEN)


def written_from_lists(rows: Sequence[Any]) -> NDArray[Any]:
    """Convert the `tolist` of an array of `WRITTEN` from JSON. Raises `ValueError` or `TypeError` for anything else."""
    for row in rows:
        text, log_probability, cut = row
        if not (isinstance(text, str) and isinstance(log_probability, float | int) and isinstance(cut, bool)):
            raise TypeError(f"{row!r} is not a text, its log-probability and whether it is cut")
    return np.array([tuple(row) for row in rows], dtype=WRITTEN)


def certainly(texts: Sequence[str]) -> NDArray[Any]:
    """Return (N,) of `WRITTEN`: these texts with probability 1, whole."""
    return written(texts, [0.0] * len(texts), [False] * len(texts))


def without_one_text(task: Task) -> str:
    """Return why a baseline that writes a text of one text does not fit the task; "" where it does."""
    if not isinstance(kinds.get(task.kind), WritesTexts):
        return f"it writes texts, and the answers of kind {task.kind} are none"
    if task.reads != "text":
        return f"it reads texts, and this task reads {task.reads}s"
    return "it reads one text, and this task has two" if task.text_a is not None else ""
