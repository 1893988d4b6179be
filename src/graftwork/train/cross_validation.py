"""Cross-validation of a linear layer on fixed features: how well it predicts training rows that it did not see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.method import FrozenPass, Workbench
from graftwork.core.ragged import flat
from graftwork.core.tally import Tally
from graftwork.train.folds import folds_of, parts_of, train_scorer
from graftwork.train.linear_fit import STRENGTHS, StandardisedFeatures, fit_linear, kept_targets

TOLERANCE = 1e-3  # a fit ends when an iteration changes its loss by less: enough to rank penalties (docs/log.md)


@dataclass(frozen=True)
class FoldedRows:
    """The feature rows of train, W in all: one per example, word or choice."""

    targets: Tensor  # (W, …)
    folds: NDArray[np.int64]  # (W,), -1 of rows that are never held out
    score: Callable[[Tensor], float]  # logits (W, C) -> headline metric on the examples that are held out

    @property
    def held_out(self) -> Tensor:
        """(W,) true for rows that are held out in one of the folds."""
        return torch.from_numpy(self.folds >= 0)

    def parts(self) -> list[tuple[Tensor, Tensor]]:
        """Return for each fold the indices of the rows held out and of all others."""
        return [(torch.from_numpy(here), torch.from_numpy(others)) for here, others in parts_of(self.folds)]


@dataclass(frozen=True)
class CrossValidation:
    """The L2 penalty with the best headline metric on held-out training rows."""

    strength: float
    score: float  # headline metric on the held-out rows, higher is better
    loss: float  # training loss of the held-out rows at the penalty where it is least


def fold_examples(bench: Workbench) -> FoldedRows:
    """Return the rows of features with one row for each training example."""
    folds, of_train = folds_of(bench), train_scorer(bench)
    held_out = np.flatnonzero(folds >= 0)

    def score(logits: Tensor) -> float:
        return of_train(logits.double().numpy()[held_out], held_out)

    return FoldedRows(torch.from_numpy(flat(bench.train.targets)), folds, score)


def fold_pass(bench: Workbench, train: FrozenPass) -> FoldedRows:
    """Return the rows of features that a pass over train keeps."""
    encoded, folds, of_train = train.encoded, folds_of(bench), train_scorer(bench)
    sampled, blind = encoded.sampled, bench.training_loss.constant(bench.train.targets, bench.setting.task)
    held_out = sampled[folds[sampled] >= 0]

    def score(logits: Tensor) -> float:
        return of_train(encoded.whole(logits.double().numpy(), sampled, blind)[held_out], held_out)

    return FoldedRows(kept_targets(bench.train, encoded), np.repeat(folds[sampled], encoded.rows_kept), score)


def cross_validate(bench: Workbench, features: Callable[[], Tensor], rows: FoldedRows, tally: Tally) -> CrossValidation:
    """Choose the penalty of a linear layer on `features` (W, P). With equal scores the stronger one is chosen."""
    objective, outputs = bench.training_loss, bench.setting.kind.outputs(bench.setting.task)
    inputs, strengths = StandardisedFeatures.of(features()), sorted(STRENGTHS, reverse=True)
    predicted = torch.zeros(len(strengths), len(rows.targets), outputs)
    for here, others in rows.parts():
        asked, known, fit = inputs.some(here), inputs.some(others), None
        for place, strength in enumerate(strengths):  # each fit starts from that with the next stronger penalty
            fit = fit_linear(known, rows.targets[others], objective, outputs, strength, fit, TOLERANCE)
            predicted[place, here] = asked.logits(fit)
            tally.add_model(fit.flops(known))
            fit = fit if fit.weight.isfinite().all() else None
    best, least = (-math.inf, max(STRENGTHS)), math.inf
    for strength, logits in zip(strengths, predicted, strict=True):  # a score or loss that is no number is never best
        best = max(best, (rows.score(logits), strength))
        least = min(least, float(objective.loss(logits[rows.held_out], rows.targets[rows.held_out])))
    return CrossValidation(best[1], best[0], least)
