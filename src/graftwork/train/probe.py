"""A probe: a linear layer on the pooled features of one block of a frozen backbone, or of a mix of all blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear

from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.core.method import Logits, Setting
from graftwork.train.answer import answer_together
from graftwork.train.flops import count_flops

MIX = "mix"  # the block of a probe that reads a weighted sum of all blocks


class PooledFeatures(Protocol):
    """The pooled features of a batch, as a probe takes them: `BatchStates`, a part of them, or cached ones."""

    def joined(self, block: int) -> Tensor:
        """Return the features (B, P), or (W, P) of words."""


@dataclass
class Probe:
    """logits = W (sum over blocks of share x pooled) + bias. Implements `Fitted` and `ReadsStates`.

    The layer is fitted and applied on the CPU, whatever device the backbone is on.
    """

    backbone: Backbone
    shares: Tensor  # (L + 1,): one-hot for a single block
    weight: Tensor  # (C, P)
    bias: Tensor  # (C,)
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Parameters of the layer and, for a mix, one score per block and gamma if it has one."""
        mixed = self.shares.numel() if self.facts["block"] == MIX else 0
        return self.weight.numel() + self.bias.numel() + mixed + ("gamma" in self.facts)

    @property
    def depth(self) -> int:
        """The highest block read: the blocks above it need not run."""
        return max(block for block, share in enumerate(self.shares.tolist()) if share)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C), a row per example; (W, C) where examples have words."""
        return answer_together(self.backbone, self.backbone.encode(examples), [self])[0]

    def read(self, seen: PooledFeatures) -> Tensor:
        """Return the logits (B, C) of one batch, or (W, C) of words."""
        shares = {block: share for block, share in enumerate(self.shares.tolist()) if share}
        alone = len(shares) == 1 and 1.0 in shares.values()
        mixed = seen.joined(*shares) if alone else sum(share * seen.joined(block) for block, share in shares.items())
        return linear(torch.as_tensor(mixed).cpu(), self.weight, self.bias)  # of (B, P)

    def delta(self) -> Mapping[str, Tensor | NDArray[Any]]:
        """Return the layer and the shares of the blocks."""
        return {"shares": self.shares, "weight": self.weight, "bias": self.bias}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Count the FLOPs of predicting these examples."""
        return count_flops(lambda: self.logits(examples))[1], "counter"


def restore_probe(method: object, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Probe:
    """Restore a probe from its stored delta: the `restore` of the methods that fit one."""
    assert setting.backbone is not None
    return Probe(setting.backbone, delta["shares"], delta["weight"], delta["bias"], facts)
