"""A linear layer fitted to its optimum on frozen features: the probe, and the initial head of gradient methods.

Starting from the fitted head keeps the first gradients from distorting the features (Kumar et al. 2022,
arXiv:2202.10054).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from graftwork.core.backbone import Encoded
from graftwork.core.kind import TrainingLoss
from graftwork.core.method import FrozenPass, Workbench
from graftwork.core.ragged import flat
from graftwork.core.tally import Tally
from graftwork.core.task import Split

STRENGTHS = (2e-3, 1e-2, 5e-2, 3e-1, 2.0, 10.0)  # L2 penalties to try


@dataclass(frozen=True)
class LinearFit:
    """logits = features @ weight.T + bias, on raw features (standardisation folded in)."""

    weight: Tensor  # (C, P)
    bias: Tensor  # (C,)
    strength: float
    evaluations: int  # of the loss and its gradient

    def logits(self, features: Tensor) -> Tensor:
        """Map features (N, P) to logits (N, C)."""
        return linear(features, self.weight, self.bias)

    def flops(self, features: StandardisedFeatures) -> float:
        """Return the FLOP of the fit: 2 per multiply-add, forward and of the gradient of the weight."""
        return self.evaluations * 4.0 * features.inputs.numel() * len(self.bias)


@dataclass(frozen=True)
class StandardisedFeatures:
    """Features of mean 0 and standard deviation 1, and their original moments; constant features are 0."""

    inputs: Tensor  # (N, P)
    mean: Tensor  # (P,)
    sd: Tensor  # (P,)

    @classmethod
    def of(cls, features: Tensor) -> StandardisedFeatures:
        """Standardise raw features (N, P) in place, to save memory; they become `inputs`."""
        mean, sd = features.mean(dim=0), features.std(dim=0, correction=0)
        sd = torch.where(sd < 1e-6, torch.ones_like(sd), sd)
        return cls(features.sub_(mean).div_(sd), mean, sd)

    def some(self, rows: Tensor) -> StandardisedFeatures:
        """Return a copy of these rows, scaled as all are."""
        return StandardisedFeatures(self.inputs[rows], self.mean, self.sd)

    def logits(self, fit: LinearFit) -> Tensor:
        """Return the logits (N, C) of a fit."""
        return linear(self.inputs, fit.weight * self.sd, fit.bias + linear(self.mean, fit.weight))


def fit_linear(
    features: StandardisedFeatures,
    targets: Tensor,
    objective: TrainingLoss,
    outputs: int,
    strength: float,
    start: LinearFit | None = None,
    tolerance: float = 1e-7,
) -> LinearFit:
    """Minimise the loss + strength / 2 x |W|^2 over the features by L-BFGS; convex, so no seed.

    The fit ends when an iteration changes the loss by less than `tolerance`.
    """
    inputs, mean, sd = features.inputs, features.mean, features.sd
    weight = torch.zeros(outputs, inputs.shape[1]) if start is None else start.weight * sd
    bias = torch.zeros(outputs) if start is None else start.bias + linear(mean, start.weight)
    weight.requires_grad_(True)
    bias.requires_grad_(True)
    solver = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-5, tolerance_change=tolerance, line_search_fn="strong_wolfe"
    )
    evaluations = 0

    def closure() -> float:
        nonlocal evaluations
        evaluations += 1
        solver.zero_grad()
        loss = objective.loss(linear(inputs, weight, bias), targets) + strength / 2 * weight.square().sum()
        loss.backward()
        return float(loss.detach())

    solver.step(closure)
    final = weight.detach() / sd
    return LinearFit(final, bias.detach() - linear(mean, final), strength, evaluations)


def fit_best_linear(
    train: tuple[Tensor, Tensor],
    validation: Tensor,
    objective: TrainingLoss,
    outputs: int,
    score: Callable[[Tensor], float],
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[LinearFit, float, float]:
    """Choose the best of `strengths` on validation features (N, P); return fit, score and the FLOPs of all fits.

    The features of `train` are standardised in place.
    """
    features, targets = StandardisedFeatures.of(train[0]), train[1]
    best: tuple[float, LinearFit] | None = None
    previous: LinearFit | None = None
    flops = 0.0
    for strength in sorted(strengths, reverse=True):  # strongest first: each fit warm-starts from the last
        previous = fit_linear(features, targets, objective, outputs, strength, previous)
        flops += previous.flops(features)
        reached = score(previous.logits(validation))
        if best is None or reached > best[0] or math.isnan(best[0]):
            best = (reached, previous)
        if not previous.weight.isfinite().all():
            previous = None  # the next fit starts from zeros
    assert best is not None
    return best[1], best[0], flops


def fit_on(
    bench: Workbench, train: FrozenPass, validation: FrozenPass, features: Callable[[FrozenPass], Tensor], tally: Tally
) -> tuple[LinearFit, float]:
    """Return the best fit on the `features` (N, P), or (W, P), of both passes by headline metric, and its score."""
    setting = bench.setting
    fit, reached, flops = fit_best_linear(
        (features(train), kept_targets(bench.train, train.encoded)),
        features(validation),
        bench.training_loss,
        setting.kind.outputs(setting.task),
        scorer(bench, validation.encoded),
    )
    tally.add_model(flops)
    return fit, reached


def fit_on_block(bench: Workbench, block: int, train: FrozenPass, validation: FrozenPass) -> tuple[LinearFit, float]:
    """Apply `fit_on` to the features after `block` blocks. It depends on no seed: runs share it."""
    return bench.once(
        f"linear layer after {block} blocks{variant_of(bench, train, validation)}",
        lambda tally: fit_on(bench, train, validation, lambda frozen: frozen.pooled(block), tally),
    )


def variant_of(bench: Workbench, *passes: FrozenPass) -> str:
    """Return what tells fits on the same features apart, for the name of shared work."""
    sampled = ", of sampled examples alone" if any(one.of_sample for one in passes) else ""
    return sampled + (", weighted by class" if bench.class_weights else "")


def kept_targets(split: Split, encoded: Encoded) -> Tensor:
    """Return the targets of the features that a pass over `split` keeps: (N,) or (N, C); of words (W,)."""
    return torch.from_numpy(flat(split.targets)[encoded.answered(encoded.sampled)])


def scorer(bench: Workbench, encoded: Encoded) -> Callable[[Tensor], float]:
    """Return a function that scores logits of the features of a pass over validation, for many words of a sample."""
    sampled, blind = encoded.sampled, bench.training_loss.constant(bench.train.targets, bench.setting.task)

    def reached(logits: Tensor) -> float:
        whole = encoded.whole(logits.double().numpy(), sampled, blind)
        return bench.score(whole) if len(sampled) == len(encoded) else bench.score(whole[sampled], sampled)

    return reached


def fitted_on(bench: Workbench, encoded: Encoded) -> dict[str, Any]:
    """Return facts of a method that predicts words: words used in convex fits, and the logits of unseen words."""
    if encoded.words is None:
        return {}
    blind = bench.training_loss.constant(bench.train.targets, bench.setting.task)
    of = int(encoded.words.counts.sum())
    return {
        "words": {"of_train": of, "in_convex_fits": encoded.kept, "unseen": encoded.words.unseen},
        "blind": blind.tolist(),
    }
