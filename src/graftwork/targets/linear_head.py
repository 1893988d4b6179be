"""The head that most kinds need: one linear layer on what is read of the network, pooled or word by word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graftwork.core.backbone import Features


class PooledHead(nn.Module):
    """`Features -> logits (B, C)`, or (W, C) of words.

    Always in fp32: a head is small, and its logits are what scores are made of.
    """

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, features: Features) -> Tensor:
        """(B, P) pooled features -> (B, C), or (W, P) of words -> (W, C)."""
        pooled = features.pooled
        with torch.autocast(pooled.device.type, enabled=False):
            logits: Tensor = self.out(pooled.float())
        return logits
