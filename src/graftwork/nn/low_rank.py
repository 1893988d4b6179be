"""LoRA: a low-rank update of a frozen linear layer (Hu et al. 2021, arXiv:2106.09685)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from graftwork.nn.sites import map_weight, site_size


class LowRank(nn.Module):
    """y -> y + (alpha / rank) B A x, with A (rank, in) random and B (out, rank) zero at the start."""

    def __init__(self, site: nn.Module, rank: int, alpha: float):
        super().__init__()
        inward, outward = site_size(site)
        self.a = nn.Parameter(torch.empty(rank, inward))
        self.b = nn.Parameter(torch.zeros(outward, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Add the low-rank update: input x (S, T, in), output y (S, T, out) -> (S, T, out)."""
        return y + linear(linear(x, self.a.to(x.dtype)), (self.scale * self.b).to(x.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """Return A (rank, in) and the scaled B (out, rank)."""
        return {"a": self.a, "b": self.scale * self.b}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Apply K updates at once: (K, N, in), (K, N, out) -> (K, N, out)."""
        return y + torch.bmm(torch.bmm(x, weights["a"].transpose(1, 2)), weights["b"].transpose(1, 2))

    def fold(self, site: nn.Module, at: str) -> str:
        """Add the update to the weight of `site`. Return ""."""
        weight = map_weight(site)
        weight += (self.scale * self.b.detach() @ self.a.detach()).to(weight.dtype)
        return ""
