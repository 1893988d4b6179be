"""Softmax over segments: the rows of a batch that belong to one example."""

from __future__ import annotations

import torch
from torch import Tensor


def log_softmax_of_segments(logits: Tensor, owners: Tensor) -> Tensor:
    """Map logits (R, …) and segment ids (R,), one integer per row, to log probabilities (R, …).

    In every column the probabilities of a segment sum to 1. Segments are shifted by their own maximum: no overflow.
    """
    segments, segment = torch.unique(owners, return_inverse=True)  # (G,), (R,)
    places = segment.reshape(-1, *[1] * (logits.dim() - 1)).expand_as(logits)  # (R, …)
    shape = (len(segments), *logits.shape[1:])
    most = logits.new_full(shape, -torch.inf).scatter_reduce(0, places, logits.detach(), "amax")  # (G, …)
    shifted = logits - most[segment]
    totals = logits.new_zeros(shape).scatter_add(0, places, shifted.exp())  # (G, …)
    return shifted - totals.log()[segment]


def cross_entropy_of_segments(logits: Tensor, chosen: Tensor, owners: Tensor) -> Tensor:
    """Return the mean over segments of -log softmax at the chosen row; logits (R,), `chosen` (R,) bool, owners (R,).

    Segments without a chosen row, whose answer is in no window, add nothing; 0 if there is no other.
    """
    if not bool(chosen.any()):
        return logits.sum() * 0
    return -log_softmax_of_segments(logits, owners)[chosen].mean()
