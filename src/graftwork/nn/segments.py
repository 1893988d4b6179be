"""Segments: the rows of one example among those of a batch, and a softmax over each."""

from __future__ import annotations

import torch
from torch import Tensor


def log_softmax_of_segments(logits: Tensor, owners: Tensor) -> Tensor:
    """(R, …) logits and (R,) a whole number per row, equal for the rows of one segment -> (R, …) log probabilities.

    In every column those of a segment sum to 1. Each segment is shifted by its own maximum, so nothing overflows.
    """
    segments, segment = torch.unique(owners, return_inverse=True)  # (G,), (R,)
    places = segment.reshape(-1, *[1] * (logits.dim() - 1)).expand_as(logits)  # (R, …)
    shape = (len(segments), *logits.shape[1:])
    most = logits.new_full(shape, -torch.inf).scatter_reduce(0, places, logits.detach(), "amax")  # (G, …)
    shifted = logits - most[segment]
    totals = logits.new_zeros(shape).scatter_add(0, places, shifted.exp())  # (G, …)
    return shifted - totals.log()[segment]


def cross_entropy_of_segments(logits: Tensor, chosen: Tensor, owners: Tensor) -> Tensor:
    """Mean over segments of -log softmax at their chosen row: (R,) logits, (R,) bool with one True a segment.

    0 for no rows. A segment without a chosen row (its answer is not seen) adds nothing.
    """
    if not bool(chosen.any()):
        return logits.sum() * 0
    return -log_softmax_of_segments(logits, owners)[chosen].mean()
