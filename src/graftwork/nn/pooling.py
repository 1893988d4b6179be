"""Pooling: what is read of a sequence of states, or of each of its words."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def pooled(sequence: Tensor, mask: Tensor, pooling: str, words: Tensor | None = None) -> Tensor:
    """(S, T, D), (S, T) True at a real position -> (S, R) in fp32, as `pooling`, one of `backbone.POOLINGS`, says.

    With `words` (S, T) the position at which each word begins, sequence by sequence: (W, D), whatever the pooling.
    """
    if words is not None:
        return sequence[words].float()
    if pooling == "mean":
        return _mean(sequence, mask)
    if pooling == "mean of words":
        return _mean(sequence, nn.functional.pad(mask[:, 2:], (1, 1)))  # what stands between two real positions
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
    """(S, D) the first real position of each sequence, or its last."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)  # (T,)
    if not last:
        places = places.flip(0)
    chosen = (places * mask).argmax(dim=1)  # (S,)
    return sequence[torch.arange(len(sequence), device=mask.device), chosen].float()
