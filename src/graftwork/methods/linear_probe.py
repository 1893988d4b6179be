"""Linear probe: a linear layer on frozen features, of the block that is best on validation (Alain & Bengio 2016,
arXiv:1610.01644) or of a learned mix of all blocks (Peters et al. 2018, arXiv:1802.05365)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import FrozenPass, Logits, Setting, Workbench
from graftwork.core.seen import Part, Seen
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.answering import answer_together
from graftwork.train.flops import counted
from graftwork.train.linear import LinearFit, fit_on, fit_on_block, fitted_on
from graftwork.train.mix import fit_mix


@dataclass
class Probe:
    """logits = W (sum over blocks of share x pooled) + bias. Implements `Fitted` and `ReadsStates`.

    The layer is fitted and applied on the processor, whatever the backbone computes on.
    """

    backbone: Backbone
    shares: Tensor  # (L + 1,): one-hot for a single block
    weight: Tensor  # (C, P)
    bias: Tensor  # (C,)
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """The layer, and the mix where there is one."""
        mixed = self.shares.numel() if self.facts["block"] == "mix" else 0
        return self.weight.numel() + self.bias.numel() + mixed

    @property
    def depth(self) -> int:
        """The highest block that is read: the blocks above it need not run."""
        return max(block for block, share in enumerate(self.shares.tolist()) if share)

    def logits(self, examples: Sequence[Example]) -> Logits:
        """(N, C), a row per example; (W, C) where examples have words."""
        return answer_together(self.backbone, self.backbone.encode(examples), [self])[0]

    def read(self, seen: Seen | Part) -> Tensor:
        """(B, C) logits of one batch, or (W, C)."""
        shares = {block: share for block, share in enumerate(self.shares.tolist()) if share}
        alone = len(shares) == 1 and 1.0 in shares.values()
        mixed = seen.joined(*shares) if alone else sum(share * seen.joined(block) for block, share in shares.items())
        return linear(torch.as_tensor(mixed).cpu(), self.weight, self.bias)  # of (B, P)

    def delta(self) -> dict[str, Tensor]:
        """The layer and the shares of the blocks."""
        return {"shares": self.shares, "weight": self.weight, "bias": self.bias}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Operators of answering these."""
        return counted(lambda: self.logits(examples))[1], "counter"


@methods.register("linear_probe")
@dataclass(frozen=True)
class LinearProbe:
    """One pass of the backbone serves every block, seed and penalty."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Fits every backbone."""
        return ""

    def fit(self, bench: Workbench) -> Probe:
        """A convex fit per block and penalty; the mix competes with the blocks on validation."""
        backbone = bench.setting.backbone
        assert backbone is not None
        train, validation = bench.frozen(bench.train, None), bench.frozen(bench.validation, None)
        tried: dict[str, float] = {}
        best: tuple[float, str, LinearFit, Tensor] | None = None
        for block in reversed(range(backbone.card.blocks + 1)):  # the output first: it wins a tie
            shares = torch.zeros(backbone.card.blocks + 1)
            shares[block] = 1.0
            fit, reached = fit_on_block(bench, block, train, validation)
            tried[str(block)] = reached
            if best is None or reached > best[0]:
                best = (reached, str(block), fit, shares)
            bench.progress(1 - block / (backbone.card.blocks + 2), f"block {block}")
        assert best is not None
        if len(set(backbone.card.widths)) == 1:  # features of different widths can't be mixed
            outputs = bench.setting.kind.outputs(bench.setting.task)
            shares = fit_mix(bench, train, best[2].strength, outputs)
            fit, reached = fit_on(bench, train, validation, lambda frozen: _mix(frozen, shares), bench.tally)
            tried["mix"] = reached
            if reached > best[0]:
                best = (reached, "mix", fit, shares)
        facts = {"block": best[1], "strength": best[2].strength, "validation_by_block": tried}
        facts |= fitted_on(bench, train.encoded)
        return Probe(backbone, best[3], best[2].weight, best[2].bias, facts)

    def restore(self, setting: Setting, delta: dict[str, Tensor], facts: Mapping[str, Any]) -> Probe:
        """From its stored layer."""
        assert setting.backbone is not None
        return Probe(setting.backbone, delta["shares"], delta["weight"], delta["bias"], facts)


def _mix(frozen: FrozenPass, shares: Tensor) -> Tensor:
    """(N, P), or (W, P): the blocks' features, weighted."""
    return torch.stack([share * frozen.pooled(block) for block, share in enumerate(shares)]).sum(dim=0)
