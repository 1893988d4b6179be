"""Losses towards the probabilities that a teacher gives (Hinton et al. 2015, arXiv:1503.02531).

Both are 0 where the logits are the teacher's, and scaled by the square of the temperature, so that it leaves the size
of the gradient alone.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, logsigmoid


def softmax_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return KL(teacher || student) of softmaxes over (B, C) logits at a temperature, the mean over B; 0 for none."""
    if not len(logits):
        return logits.sum()
    ours, theirs = (log_softmax(one / temperature, dim=-1) for one in (logits, teacher))
    return kl_div(ours, theirs, reduction="batchmean", log_target=True) * temperature**2


def sigmoid_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return KL(teacher || student) of the yes-or-no answers of (B, C) logits; the mean over both, 0 for no rows."""
    if not len(logits):
        return logits.sum()
    ours, theirs = logits / temperature, teacher / temperature
    share = theirs.sigmoid()
    yes = share * (logsigmoid(theirs) - logsigmoid(ours))
    no = (1 - share) * (logsigmoid(-theirs) - logsigmoid(-ours))
    return (yes + no).mean() * temperature**2
