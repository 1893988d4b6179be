"""Prefix tuning: learned keys and values in front of those of a text (Li & Liang 2021, arXiv:2101.00190)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

START = 0.02  # standard deviation of untrained keys and values


class VirtualTokens(nn.Module):
    """Keys and values (P, H d) of P virtual tokens, the same before every text, drawn small at the start."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.key, self.value = (nn.Parameter(START * torch.randn(length, width)) for _ in range(2))

    def forward(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Prepend them to keys and values: (S, H, T, d) each -> (S, H, P + T, d) each."""
        return _before(self.key, key), _before(self.value, value)


def _before(virtual: Tensor, own: Tensor) -> Tensor:
    sequences, heads, _, width = own.shape
    put = virtual.to(own.dtype).view(-1, heads, width).transpose(0, 1)  # (H, P, d)
    return torch.cat([put.expand(sequences, -1, -1, -1), own], dim=2)
