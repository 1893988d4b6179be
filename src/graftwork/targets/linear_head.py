"""The default head: one linear layer on the pooled features of each example or word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graftwork.core.backbone import Features


class PooledHead(nn.Module):
    """`Features -> logits (B, C)`, or (W, C) of words.

    Always in fp32: a head is small, and scores depend on its logits.
    """

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.out = nn.Linear(width, outputs)

    def forward(self, features: Features) -> Tensor:
        """Map pooled features (B, P) to (B, C), or (W, P) of words to (W, C)."""
        pooled = features.pooled
        with torch.autocast(pooled.device.type, enabled=False):
            logits: Tensor = self.out(pooled.float())
        return logits
