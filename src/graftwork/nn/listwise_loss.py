"""The listwise loss: cross entropy of a softmax over the candidates of each example."""

from __future__ import annotations

import torch
from torch import Tensor

from graftwork.nn.segments import log_softmax_of_segments


def listwise_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross entropy of a softmax over candidates, mean over the examples with a right candidate; 0 if none.

    Right candidates share the target. `logits` (W, 1); `targets` (W, 2): 1 if right, else 0, and the example's number.

    This is ListNet's top-one loss (Cao et al. 2007), and a bound on the mean reciprocal rank (Bruch et al. 2019,
    doi:10.1145/3341981.3344221).
    """
    _, owners = torch.unique(targets[:, 1], return_inverse=True)  # (W,)
    marks = targets[:, 0].to(logits.dtype)
    right = marks.new_zeros(len(targets)).scatter_add(0, owners, marks)  # right candidates of each example
    shares = marks / right[owners].clamp(min=1)
    answered = (right > 0).sum().clamp(min=1)
    return -(log_softmax_of_segments(logits[:, 0], owners) * shares).sum() / answered


def count_answered(targets: Tensor) -> float:
    """Return how many examples have a right candidate, from marks and example numbers (W, 2)."""
    return len(torch.unique(targets[targets[:, 0] > 0, 1]))
