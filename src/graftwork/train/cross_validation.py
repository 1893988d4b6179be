"""Cross-validation of a linear layer on frozen features: how well it predicts training rows that it was not fitted to.

A choice by held-out training rows leaves validation untouched. The best of many fits on a few validation rows is often
a lucky one, and its score on these rows is too high (Cawley & Talbot 2010, JMLR 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.example import plain
from graftwork.core.method import FrozenPass, Scorer, Workbench
from graftwork.core.tally import Tally
from graftwork.io.files import digest
from graftwork.train.linear_fit import STRENGTHS, StandardisedFeatures, fit_linear, kept_targets, scorer

FOLDS = 5
TOLERANCE = 1e-3  # a fit ends when an iteration changes its loss by less: enough to rank penalties (docs/log.md)


@dataclass(frozen=True)
class CrossValidation:
    """The L2 penalty with the best headline metric on held-out training rows."""

    strength: float
    score: float  # headline metric on the held-out rows, higher is better
    loss: float  # training loss of the held-out rows at the penalty where it is least


def cross_validate(
    bench: Workbench, train: FrozenPass, features: Callable[[], Tensor], folds: NDArray[np.int64], tally: Tally
) -> CrossValidation:
    """Choose the penalty of a linear layer on `features` (N, P), or (W, P), of a pass over train.

    `folds` (N,) are those of the examples. With equal scores the stronger penalty is chosen.
    """
    setting, objective, encoded = bench.setting, bench.training_loss, train.encoded
    targets, outputs = kept_targets(bench.train, encoded), setting.kind.outputs(setting.task)
    fold_of_rows = torch.from_numpy(np.repeat(folds[encoded.sampled], encoded.rows_kept))
    score = scorer(bench, encoded, Scorer(setting.task.metrics[0], setting, bench.train))
    inputs, strengths = StandardisedFeatures.of(features()), sorted(STRENGTHS, reverse=True)
    held_out = torch.zeros(len(strengths), len(targets), outputs)
    for fold in fold_of_rows.unique().tolist():
        here, others = (torch.nonzero(rows)[:, 0] for rows in (fold_of_rows == fold, fold_of_rows != fold))
        asked, known, fit = inputs.some(here), inputs.some(others), None
        for number, strength in enumerate(strengths):  # each fit starts from that with the next stronger penalty
            fit = fit_linear(known, targets[others], objective, outputs, strength, fit, TOLERANCE)
            held_out[number, here] = asked.logits(fit)
            tally.add_model(fit.flops(known))
            fit = fit if fit.weight.isfinite().all() else None
    best, least = (-math.inf, max(STRENGTHS)), math.inf
    for strength, logits in zip(
        strengths, held_out, strict=True
    ):  # a score or loss that is no number is never the best
        best = max(best, (score(logits), strength))
        least = min(least, float(objective.loss(logits, targets)))
    return CrossValidation(best[1], best[0], least)


def folds_of(bench: Workbench) -> NDArray[np.int64]:
    """Return the fold (N,) of every training example: strata are spread evenly, equal inputs stay together."""
    examples = bench.train.examples
    keys = [digest(plain(example.inputs)) for example in examples]
    strata = map(repr, bench.setting.kind.strata([example.target for example in examples]))
    folds: dict[str, int] = {}
    for _, key in sorted(zip(strata, keys, strict=True)):
        folds.setdefault(key, len(folds) % FOLDS)
    return np.array([folds[key] for key in keys], dtype=np.int64)
