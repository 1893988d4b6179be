"""The loss of candidates that stand beside one another: a softmax over those of each example."""

from __future__ import annotations

import torch
from torch import Tensor

from graftwork.nn.segments import log_softmax_of_segments


def listwise_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy of a softmax over each example's candidates and its right ones in equal shares, mean over examples.

    (W, 1) logits, (W, 2) marks and examples. One without a right candidate adds nothing; 0 where none has one.

    Of all losses over lists the plainest (ListNet's top one, Cao et al. 2007), and a bound on the mean reciprocal rank
    (Bruch et al. 2019, doi:10.1145/3341981.3344221).
    """
    _, owners = torch.unique(targets[:, 1], return_inverse=True)  # (W,)
    marks = targets[:, 0].to(logits.dtype)
    right = marks.new_zeros(len(targets)).scatter_add(0, owners, marks)  # right candidates of each example
    shares = marks / right[owners].clamp(min=1)
    answered = (right > 0).sum().clamp(min=1)
    return -(log_softmax_of_segments(logits[:, 0], owners) * shares).sum() / answered


def answered(targets: Tensor) -> float:
    """How many examples have a right candidate: (W, 2) marks and examples."""
    return len(torch.unique(targets[targets[:, 0] > 0, 1]))
