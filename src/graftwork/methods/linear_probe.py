"""Linear probe: a linear layer on frozen features of one block (Alain & Bengio 2016, arXiv:1610.01644) or of a learned
mix of all blocks (Peters et al. 2018, arXiv:1802.05365), whichever predicts held-out training rows best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import ClassVar

import torch

from graftwork.core.backbone import BackboneCard
from graftwork.core.method import AS_IT_COMES, Entries, Workbench
from graftwork.core.task import Task
from graftwork.registry import methods
from graftwork.train.cross_validation import CrossValidation, cross_validate, fold_pass
from graftwork.train.linear_fit import StandardisedFeatures, fit_linear, fitted_on, kept_targets, variant_of
from graftwork.train.probe import MIX, Probe, restore_probe
from graftwork.train.scalar_mix_layer import fit_mix, mix_blocks


@methods.register("linear_probe")
@dataclass(frozen=True)
class LinearProbe:
    """A linear probe; one frozen pass of the backbone serves every block, seed and penalty."""

    VERSION: ClassVar[int] = 2  # 1 chose block and penalty on validation
    RESTORES: ClassVar[tuple[int, ...]] = (1,)
    uses_backbone: ClassVar[bool] = True
    LADDER: ClassVar[Entries] = AS_IT_COMES
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return an empty string: every task and backbone fits."""
        return ""

    def fit(self, bench: Workbench) -> Probe:
        """Cross-validate every block and the mix; fit a layer to the one with the least loss of held-out rows."""
        backbone, outputs = bench.setting.backbone, bench.setting.kind.outputs(bench.setting.task)
        assert backbone is not None
        train, blocks = bench.frozen(bench.train, None), backbone.card.blocks
        rows = fold_pass(bench, train)
        tried: dict[str, CrossValidation] = {}
        for block in reversed(range(blocks + 1)):  # the output first: it wins a tie
            tried[str(block)] = bench.once(
                f"cross-validation after {block} blocks{variant_of(bench, train)}",
                partial(cross_validate, bench, partial(train.pooled, block), rows),
            )
            bench.progress(1 - (block + 1) / (blocks + 3), f"block {block}")
        chosen = least_loss(tried)
        shares = torch.eye(blocks + 1)[int(chosen)]
        features = partial(train.pooled, int(chosen))
        if blocks and len(set(backbone.card.widths)) == 1:  # features of different widths can't be mixed
            mix = fit_mix(bench, train, tried[chosen].strength, outputs)
            bench.progress(1 - 0.5 / (blocks + 3), MIX)
            tried[MIX] = cross_validate(bench, partial(mix_blocks, train, mix), rows, bench.tally)
            if least_loss(tried) == MIX:
                chosen, shares, features = MIX, mix, partial(mix_blocks, train, mix)
        inputs, targets = StandardisedFeatures.of(features()), kept_targets(bench.train, train.encoded)
        fit = fit_linear(inputs, targets, bench.training_loss, outputs, tried[chosen].strength)
        bench.tally.add_model(fit.flops(inputs))
        facts = {
            "block": chosen,
            "strength": fit.strength,
            "cross_validation": {name: asdict(found) for name, found in tried.items()},
        } | fitted_on(bench, train.encoded)
        return Probe(backbone, shares, fit.weight, fit.bias, facts)

    restore = restore_probe


def least_loss(tried: Mapping[str, CrossValidation]) -> str:
    """Return the name with the least loss of held-out rows; the first of equals."""
    return min(tried, key=lambda name: tried[name].loss)
