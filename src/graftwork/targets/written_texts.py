"""Written texts: what a network that writes answers with, beside how probable it found each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import Kind, OwnOutputs

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


def are_written(kind: Kind) -> bool:
    """Return whether the outputs of a kind are `WRITTEN`, so that its backbone should write if it can."""
    return isinstance(kind, OwnOutputs) and getattr(kind.from_lists([]), "dtype", None) == WRITTEN
