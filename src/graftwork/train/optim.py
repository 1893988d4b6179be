"""AdamW over one flat fp32 copy of what is trained (Loshchilov & Hutter 2019, arXiv:1711.05101).

Weights that compute in bf16 keep their fp32 master here; fp32 weights live in the flat vector itself. One
vector means one kernel for the norm and one for the update, whatever the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class _Group:
    """Parameters with one weight decay, as one flat vector."""

    def __init__(self, parameters: list[nn.Parameter]):
        self.parameters = parameters
        self.master = torch.cat([p.detach().float().flatten() for p in parameters])
        self.master.grad = torch.zeros_like(self.master)
        sizes = [p.numel() for p in parameters]
        shapes = [p.shape for p in parameters]
        self.weights = [v.view(s) for v, s in zip(self.master.split(sizes), shapes, strict=True)]
        self.gradients = [v.view(s) for v, s in zip(self.master.grad.split(sizes), shapes, strict=True)]
        for parameter, weight in zip(parameters, self.weights, strict=True):
            if parameter.dtype == torch.float32:
                parameter.data = weight

    def gather(self) -> Tensor:
        """Move the gradients into the flat vector and return its squared norm."""
        assert self.master.grad is not None
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            if parameter.grad is None:
                gradient.zero_()
            else:
                gradient.copy_(parameter.grad)
                parameter.grad = None
        return torch.dot(self.master.grad, self.master.grad)

    def scatter(self) -> None:
        """Round the new fp32 weights to what computes."""
        for parameter, weight in zip(self.parameters, self.weights, strict=True):
            if parameter.dtype != torch.float32:
                parameter.data.copy_(weight)


class FlatAdamW:
    """AdamW with bias correction, global-norm clipping and decay on matrices only."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], learning_rate: float, weight_decay: float, clip: float):
        decayed = [p for name, p in parameters.items() if p.ndim >= 2 and "embedding" not in name]
        plain = [p for name, p in parameters.items() if p.ndim < 2 or "embedding" in name]
        self.learning_rate, self.clip = learning_rate, clip
        self.groups = [_Group(group) for group in (decayed, plain) if group]
        decays = [decay for group, decay in ((decayed, weight_decay), (plain, 0.0)) if group]
        self.adam = torch.optim.AdamW(
            [
                {"params": [group.master], "weight_decay": decay}
                for group, decay in zip(self.groups, decays, strict=True)
            ],
            lr=learning_rate,
            betas=(0.9, 0.999),
            eps=1e-8,
            fused=True,
        )

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """One update at `rate` x the learning rate; returns the gradient's norm before clipping."""
        norm = math.sqrt(sum(float(group.gather()) for group in self.groups))
        if not math.isfinite(norm):
            return norm
        if norm > self.clip:
            for group in self.groups:
                assert group.master.grad is not None
                group.master.grad.mul_(self.clip / norm)
        for settings in self.adam.param_groups:
            settings["lr"] = self.learning_rate * rate
        self.adam.step()
        for group in self.groups:
            group.scatter()
        return norm


def warm_up_then_linear(step: int, steps: int, warm_up: float) -> float:
    """Share of the learning rate at `step` (0-based) of `steps`: up over the first `warm_up` share, then down to 0."""
    rise = max(1, round(steps * warm_up))
    if step < rise:
        return (step + 1) / rise
    return max(0.0, (steps - step) / max(1, steps - rise))
