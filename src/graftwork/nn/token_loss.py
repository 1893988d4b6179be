"""Cross entropy of a linear layer over a vocabulary, computed in chunks of tokens to hold few logits at a time.

Logits are the largest tensor of a language model's step: (tokens, vocabulary), and as much again for the softmax, for
its gradient and for every cast. Allocating such memory takes as long as filling it. Here the gradient is computed with
the loss, while a chunk's logits are in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

NUMBERS_AT_ONCE = 1 << 21  # logits of a chunk: 8 MB, which an allocator reuses for the next chunk


class TokenLoss(torch.autograd.Function):
    """Sum over tokens of -log softmax(x Wᵀ + b) at their targets."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, learns: bool) -> Tensor:
        """Map (N, D), (V, D), (V,) and (N,) to () in fp32; gradients are computed only if `learns`."""
        inner, shift = weight.to(x.dtype), bias.float()
        total = x.new_zeros((), dtype=torch.float32)
        of_x = torch.empty_like(x) if learns else None
        of_weight, of_bias = torch.zeros_like(weight), torch.zeros_like(shift)
        size = max(1, NUMBERS_AT_ONCE // len(weight))
        for start in range(0, len(x), size):
            part, wanted = x[start : start + size], targets[start : start + size, None]  # (n, D), (n, 1)
            logits = torch.mm(part, inner.t()).float().add_(shift)  # (n, V)
            logits -= logits.amax(dim=-1, keepdim=True)
            chosen = logits.gather(1, wanted)
            sums = logits.exp_().sum(dim=-1, keepdim=True)
            total += (sums.log() - chosen).sum()
            if of_x is not None:
                errors = logits.div_(sums).scatter_add_(1, wanted, logits.new_full(wanted.shape, -1.0))
                of_bias += errors.sum(dim=0)
                narrow = errors.to(x.dtype)
                torch.mm(narrow, inner, out=of_x[start : start + size])
                of_weight += torch.mm(narrow.t(), part)
        ctx.save_for_backward(of_x, of_weight, of_bias.to(bias.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s tensors, times `gradient` ()."""
        of_x, of_weight, of_bias = ctx.saved_tensors
        return gradient.to(of_x.dtype) * of_x, gradient * of_weight, gradient * of_bias, None, None


def token_loss(x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the sum of -log p over tokens: states (N, D), a decoder (V, D) and its bias (V,), targets (N,) -> ().

    Products are in the precision of `x`, everything else in fp32.
    """
    with torch.autocast(x.device.type, enabled=False):
        loss: Tensor = TokenLoss.apply(x, weight, bias, targets, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
    return loss
