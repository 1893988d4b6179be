"""Log-probabilities of given tokens, computed in parts: over a large vocabulary logits are most of a step's memory.

PyTorch's cross entropy keeps the logits, a copy in fp32 and all log-probabilities for the backward pass: with the
gradient, 16 bytes per position and token of the vocabulary in bf16. Here it is 4: the logits and their gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS_AT_ONCE = 128  # positions whose logits are in fp32 at a time


def token_chances(logits: Tensor, tokens: Tensor, nothing: int) -> Tensor:
    """Return (N,) fp32: the log-probability of each of `tokens` (N,) by its logits (N, V); 0 for the id `nothing`."""
    found: Tensor = _TokenChances.apply(logits, tokens, nothing)  # type: ignore[no-untyped-call]
    return found


class _TokenChances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, tokens: Tensor, nothing: int) -> Tensor:
        sums = torch.cat([part.float().logsumexp(dim=1) for part in logits.split(ROWS_AT_ONCE)])  # (N,)
        real = tokens != nothing
        chosen = tokens.masked_fill(~real, 0)
        ctx.save_for_backward(logits, chosen, real, sums)
        return (logits.gather(1, chosen[:, None])[:, 0].float() - sums).masked_fill(~real, 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, chosen, real, sums = ctx.saved_tensors
        weights = gradients[0].masked_fill(~real, 0.0)[:, None]  # (N, 1)
        found = torch.empty_like(logits)
        for start in range(0, len(logits), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            part = (logits[rows].float() - sums[rows, None]).exp_().mul_(-weights[rows])  # (n, V)
            found[rows] = part.scatter_add_(1, chosen[rows, None], weights[rows])
        return found, None, None
