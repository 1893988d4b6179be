"""Pooling of states into one feature vector per sequence, or per word."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def pool_states(sequence: Tensor, mask: Tensor, pooling: str, words: Tensor | None = None) -> Tensor:
    """Pool states (S, T, D), mask (S, T) True at a real position, to (S, R) fp32 by `pooling` of `backbone.POOLINGS`.

    With `words` (S, T), return the states at which words begin, sequence by sequence: (W, D), whatever the pooling.
    """
    if words is not None:
        return sequence[words].float()
    if pooling == "mean":
        return _mean(sequence, mask)
    if pooling == "mean of words":
        return _mean(sequence, nn.functional.pad(mask[:, 2:], (1, 1)))  # positions between two real ones
    if pooling == "first two":
        return sequence[:, :2].float().mean(dim=1)
    if pooling == "concat":
        highest = sequence.float().masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)  # (S, D)
        return torch.cat([_at(sequence, mask, last=True), highest, _mean(sequence, mask)], dim=-1)
    return _at(sequence, mask, last=pooling == "last")


def _mean(sequence: Tensor, mask: Tensor) -> Tensor:
    real = mask[:, :, None]  # (S, T, 1)
    return (sequence.float() * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)


def _at(sequence: Tensor, mask: Tensor, last: bool) -> Tensor:
    """Return the state (S, D) at the first or last real position of each sequence."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)  # (T,)
    if not last:
        places = places.flip(0)
    chosen = (places * mask).argmax(dim=1)  # (S,)
    return sequence[torch.arange(sequence.shape[0], device=mask.device), chosen].float()
