"""Prototypes: an example gets the class with the nearest mean of frozen features (Snell et al. 2017,
arXiv:1703.05175, without episodes; centred as in Wang et al. 2019, arXiv:1911.04623)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import linear, normalize

from graftwork.core.backbone import BackboneCard
from graftwork.core.kind import Kind, OneClass
from graftwork.core.method import AS_IT_COMES, Entries, Workbench
from graftwork.core.task import Task
from graftwork.registry import kinds, methods
from graftwork.train.cross_validation import FoldedRows, fold_pass
from graftwork.train.probe import Probe, restore_probe

DISTANCES = ("cosine", "euclid")
SHARPNESS = (-4.0, 8.0)  # bounds of the log of the factor on logits of unit standard deviation


@methods.register("prototype")
@dataclass(frozen=True)
class Prototype:
    """Nearest class means; only the means and one temperature are fitted."""

    distance: str = "euclid"  # or "cosine", after subtracting the centre of all means

    VERSION: ClassVar[int] = 2  # 1 chose block and temperature on validation
    RESTORES: ClassVar[tuple[int, ...]] = (1,)
    uses_backbone: ClassVar[bool] = True
    CURVE: ClassVar[Entries] = AS_IT_COMES

    def unfit(self, task: Task, card: BackboneCard | None) -> str:
        """Return a reason unless each example has one class."""
        if self.distance not in DISTANCES:
            return f"distance must be one of {', '.join(DISTANCES)}, not {self.distance!r}"
        fits = isinstance(kinds.get(task.kind), OneClass)
        return "" if fits else f"it needs one class of each example, not {task.kind}"

    def fit(self, bench: Workbench) -> Probe:
        """Keep the block, and fit the temperature, with the least loss of training rows held out of the means."""
        backbone, kind = bench.setting.backbone, bench.setting.kind
        assert backbone is not None
        train, blocks = bench.frozen(bench.train, None), backbone.card.blocks
        rows, classes = fold_pass(bench, train), kind.outputs(bench.setting.task)
        tried: dict[str, float] = {}
        best = (math.inf, blocks, 1.0)
        for block in reversed(range(blocks + 1)):  # the output first: it wins a tie
            features = train.pooled(block)
            logits, targets = self._held_out(features, rows, classes)
            factor, loss = 1.0, 0.0
            if len(targets):
                factor = sharpness(logits, targets, kind)
                loss = float(kind.loss(factor * logits, targets))
            tried[str(block)] = loss
            bench.tally.add_model(2.0 * (len(rows.parts()) + 1) * features.numel())
            if loss < best[0]:
                best = (loss, block, factor)
            bench.progress(1 - block / (blocks + 1), f"block {block}")
        _, block, factor = best
        weight, bias = nearest_mean(train.pooled(block), rows.targets, classes, self.distance)
        facts = {"block": str(block), "sharpness": factor, "held_out_loss_by_block": tried}
        shares = torch.zeros(blocks + 1)
        shares[block] = 1.0
        return Probe(backbone, shares, factor * weight, factor * bias, facts)

    def _held_out(self, features: Tensor, rows: FoldedRows, classes: int) -> tuple[Tensor, Tensor]:
        """Return logits (H, C) and targets (H,) of the held-out rows whose class other folds have too."""
        logits, targets = [torch.zeros(0, classes)], [rows.targets[:0]]
        for here, others in rows.parts():
            here = here[torch.isin(rows.targets[here], rows.targets[others])]
            layer = nearest_mean(features[others], rows.targets[others], classes, self.distance)
            logits.append(linear(features[here], *layer))
            targets.append(rows.targets[here])
        return torch.cat(logits), torch.cat(targets)

    restore = restore_probe


def nearest_mean(features: Tensor, targets: Tensor, classes: int, distance: str) -> tuple[Tensor, Tensor]:
    """Features (N, P) of `classes` C -> weight (C, P) and bias (C,) of a layer whose highest logit is the nearest mean.

    Euclid: -|x - c|^2 without the term |x|^2, which all classes share. Cosine: the cosine of x and c, both minus the
    centre of all means, times the length of x, which all classes share. A class without rows is never the nearest.
    """
    there = torch.bincount(targets, minlength=classes).float()  # (C,)
    sums = torch.zeros(classes, features.shape[1]).index_add_(0, targets, features)
    means = sums / there.clamp(min=1)[:, None]  # (C, P)
    centre = means[there > 0].mean(dim=0)
    apart = means - centre
    if distance == "cosine":
        apart, bias = normalize(apart, dim=1), torch.zeros(classes)
    else:
        bias = -apart.square().sum(dim=1) / 2
    apart[there == 0] = 0
    logits = linear(features - centre, apart, bias)[:, there > 0]
    spread = logits.std(correction=0).clamp(min=1e-6)
    lowest = (logits.min() - spread) / spread - 10
    weight, bias = apart / spread, (bias - linear(centre, apart)) / spread
    bias[there == 0] = lowest
    return weight, bias


def sharpness(logits: Tensor, targets: Tensor, kind: Kind) -> float:
    """Return the factor on logits (N, C) that minimises the loss (temperature scaling, Guo et al. 2017,
    arXiv:1706.04599)."""

    def loss(exponent: float) -> float:
        return float(kind.loss(logits * float(np.exp(exponent)), targets))

    return float(np.exp(minimize_scalar(loss, bounds=SHARPNESS, method="bounded").x))
