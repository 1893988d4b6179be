"""Distillation losses: divergence from the probabilities of a teacher (Hinton et al. 2015, arXiv:1503.02531).

Both are 0 if the logits equal the teacher's. They are scaled by the squared temperature, so that the size of the
gradient does not depend on it.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, logsigmoid


def softmax_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return KL(teacher || student) of softmaxes over (B, C) logits at a temperature, mean over B; 0 for no rows."""
    if not len(logits):
        return logits.sum()
    ours, theirs = (log_softmax(one / temperature, dim=-1) for one in (logits, teacher))
    return kl_div(ours, theirs, reduction="batchmean", log_target=True) * temperature**2


def sigmoid_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return KL(teacher || student) of binary predictions from (B, C) logits, mean over B and C; 0 for no rows."""
    if not len(logits):
        return logits.sum()
    ours, theirs = logits / temperature, teacher / temperature
    share = theirs.sigmoid()
    yes = share * (logsigmoid(theirs) - logsigmoid(ours))
    no = (1 - share) * (logsigmoid(-theirs) - logsigmoid(-ours))
    return (yes + no).mean() * temperature**2
