"""Frozen int8 linear layers on a CPU, with one scale per row of the weight and per input (Dettmers et al. 2022,
arXiv:2208.07339, without its outliers).

Every input vector is quantised by itself when it comes, so that a result does not depend on the rest of its batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

STEPS = 127  # largest int8 that is used: symmetric around 0
LEAST = 1e-12  # least scale, of rows of zeros


def quantised(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (N, in) as int8, with their scales (N, 1) in fp32. Rows that were int8 before get the same int8."""
    scale = (rows.float().abs().amax(dim=1, keepdim=True) / STEPS).clamp_min_(LEAST)
    return (rows.float() / scale).round_().to(torch.int8), scale


class Int8Weight:
    """A weight as int8, quantised on first use; layers that share the weight share it."""

    def __init__(self) -> None:
        self._made_of: tuple[int, int] | None = None
        self._found: tuple[Tensor, Tensor] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Int8Weight:
        """Return itself: `of` recognises a copy of the weight by its address."""
        return self

    def of(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the int8 (in, out) and the scales (out,) of a weight (out, in)."""
        now = weight.data_ptr(), weight._version
        if self._made_of != now or self._found is None:
            matrix, scale = quantised(weight.detach())
            self._found, self._made_of = (matrix.T, scale[:, 0]), now
        return self._found


class Int8Map(nn.Linear):
    """An `nn.Linear` that multiplies in int8 if it is frozen, in fp32, on a CPU and needs no gradient."""

    def __init__(self, plain: nn.Linear):
        nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias = plain.weight, plain.bias
        self._int8 = Int8Weight()

    def forward(self, input: Tensor) -> Tensor:
        """Map (…, in) to (…, out)."""
        trained = self.weight.requires_grad or torch.is_grad_enabled()
        if trained or input.device.type != "cpu" or not (input.dtype == self.weight.dtype == torch.float32):
            return linear(input, self.weight, self.bias)
        matrix, scales = self._int8.of(self.weight)
        rows, own = quantised(input.reshape(-1, input.shape[-1]))
        product = torch._int_mm(rows, matrix).float().mul_(own).mul_(scales)  # (N, out)
        product = product if self.bias is None else product.add_(self.bias)
        return product.view(*input.shape[:-1], self.out_features)


def use_int8_maps(network: nn.Module) -> None:
    """Replace every `nn.Linear` in `network` by an `Int8Map` of the same parameters."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, Int8Map(child).train(child.training))
