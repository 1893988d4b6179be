"""Linear probe: a linear layer on frozen features of the block that is best on validation (Alain & Bengio 2016,
arXiv:1610.01644) or of a learned mix of all blocks (Peters et al. 2018, arXiv:1802.05365)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import AS_IT_COMES, Entries, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.linear_fit import LinearFit, fit_on, fit_on_block, fitted_on
from graftwork.train.probe import Probe, restore_probe
from graftwork.train.scalar_mix_layer import fit_mix, mix_blocks


@methods.register("linear_probe")
@dataclass(frozen=True)
class LinearProbe:
    """A linear probe; one frozen pass of the backbone serves every block, seed and penalty."""

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = True
    LADDER: ClassVar[Entries] = AS_IT_COMES
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return an empty string: every task and backbone fits."""
        return ""

    def fit(self, bench: Workbench) -> Probe:
        """Make a convex fit per block and penalty, and one of a mix; keep the best on validation."""
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
        if backbone.card.blocks and len(set(backbone.card.widths)) == 1:  # features of different widths can't be mixed
            outputs = bench.setting.kind.outputs(bench.setting.task)
            shares = fit_mix(bench, train, best[2].strength, outputs)
            fit, reached = fit_on(bench, train, validation, lambda frozen: mix_blocks(frozen, shares), bench.tally)
            tried["mix"] = reached
            if reached > best[0]:
                best = (reached, "mix", fit, shares)
        facts = {"block": best[1], "strength": best[2].strength, "validation_by_block": tried}
        facts |= fitted_on(bench, train.encoded)
        return Probe(backbone, best[3], best[2].weight, best[2].bias, facts)

    restore = restore_probe
