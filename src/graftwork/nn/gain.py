"""(IA)³: learned gains of the outputs or inputs of a site, a layer that a method adapts (Liu et al. 2022,
arXiv:2205.05638)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graftwork.nn.sites import bias_of, map_weight


class Gain(nn.Module):
    """y -> y * (1 + g), with g (width,) zero at the start: the identity."""

    def __init__(self, width: int):
        super().__init__()
        self.g = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Scale y: (S, T, in), (S, T, width) -> (S, T, width)."""
        return torch.addcmul(y, y, self.g.to(y.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """Return g (width,)."""
        return {"g": self.g}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K gains at once: (K, N, in), (K, N, width) -> (K, N, width)."""
        return torch.addcmul(y, y, weights["g"][:, None])

    def fold(self, site: nn.Module, at: str) -> str:
        """Multiply the gains into the columns of the weight (`at` "input") or into its rows and the bias. Return ""."""
        weight, bias = map_weight(site), bias_of(site)
        gain = (1 + self.g.detach()).to(weight.dtype)
        weight *= gain if at == "input" else gain[:, None]
        if bias is not None and at == "output":
            bias *= gain
        return ""
