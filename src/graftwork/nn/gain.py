"""Learned gains of the outputs or inputs of a site (Liu et al. 2022, arXiv:2205.05638)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Gain(nn.Module):
    """y -> y * (1 + g), with g (width,) zero at the start: the identity."""

    def __init__(self, width: int):
        super().__init__()
        self.g = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(S, T, in), (S, T, width) -> (S, T, width)."""
        return torch.addcmul(y, y, self.g.to(y.dtype))

    def weights(self) -> Mapping[str, Tensor]:
        """g (width,)."""
        return {"g": self.g}

    @staticmethod
    def adapt(x: Tensor, y: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """(K, N, in), (K, N, width) -> (K, N, width), by K gains."""
        return torch.addcmul(y, y, weights["g"][:, None])
