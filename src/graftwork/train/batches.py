"""Batches of near-equal lengths for inference: frozen passes and predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.near_lengths import near_lengths


def by_length(lengths: NDArray[np.int64], tokens: int, examples: int | None = None) -> list[NDArray[np.int64]]:
    """Batch every index of `lengths` (N,) once, the longest first, so that a batch too large for memory fails early.

    A batch's longest length times its size is at most `tokens`, and its size at most `examples`; an example longer than
    `tokens` is a batch by itself.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        size = max(1, tokens // max(1, int(lengths[order[start]])))
        size = size if examples is None else min(size, examples)
        batches.append(order[start : start + size])
        start += size
    return batches


def with_little_padding(
    lengths: NDArray[np.int64], tokens: int, examples: int | None, at_least: float
) -> list[NDArray[np.int64]]:
    """Batch as `by_length`, and divide a batch where that saves much padding, as it does for few mixed lengths.

    `at_least` is the number of positions that another forward pass must save (infinite: no batch is divided).
    """
    whole = by_length(lengths, tokens, examples)
    return [batch[part] for batch in whole for part in near_lengths(lengths[batch], at_least)]
