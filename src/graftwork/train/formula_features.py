"""A linear layer on features computed from an example by a formula: the baselines without a backbone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear

from graftwork.core.example import Example
from graftwork.core.method import Logits, Workbench
from graftwork.core.ragged import flat
from graftwork.core.tally import Tally
from graftwork.errors import IncompatibleModule
from graftwork.train.cross_validation import cross_validate, fold_examples
from graftwork.train.linear_fit import LinearFit, StandardisedFeatures, fit_linear

Formula = Callable[[Example], NDArray[np.float32]]  # an example -> (F,)


@dataclass
class LinearOnFormula:
    """logits = formula(example) @ weight.T + bias. Implements `Fitted`."""

    formula: Formula
    weight: Tensor  # (C, F)
    bias: Tensor  # (C,)
    facts: Mapping[str, Any]

    @property
    def trained_parameters(self) -> int:
        """Parameters of the linear layer."""
        return self.weight.numel() + self.bias.numel()

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C), a row per example."""
        return linear(made_of(examples, self.formula), self.weight, self.bias).double().numpy()

    def delta(self) -> dict[str, Tensor]:
        """Return the linear layer; the formula has nothing to store."""
        return {"weight": self.weight, "bias": self.bias}

    def flops(self, examples: Sequence[Example]) -> tuple[float, str]:
        """Return two FLOP per feature and class; the formula itself is not counted."""
        return 2.0 * len(examples) * self.weight.numel(), "model"


def made_of(examples: Sequence[Example], formula: Formula) -> Tensor:
    """Return the (N, F) features of these examples."""
    return torch.from_numpy(np.stack([formula(example) for example in examples]))


def fit_on_formula(bench: Workbench, name: str, formula: Formula) -> LinearOnFormula:
    """Fit with the penalty that is best on held-out training rows. No seed plays a part: runs share it as `name`."""

    def work(tally: Tally) -> tuple[LinearFit, float]:
        features = made_of(bench.train.examples, formula)
        bench.progress(0.5, "features computed")
        found = cross_validate(bench, features.clone, fold_examples(bench), tally)
        inputs, targets = StandardisedFeatures.of(features), torch.from_numpy(flat(bench.train.targets))
        outputs = bench.setting.kind.outputs(bench.setting.task)
        fit = fit_linear(inputs, targets, bench.training_loss, outputs, found.strength)
        tally.add_model(fit.flops(inputs))
        return fit, found.score

    fit, reached = bench.once(name, work)
    facts = {"strength": fit.strength, "held_out": reached, "features": fit.weight.shape[1]}
    return LinearOnFormula(formula, fit.weight, fit.bias, facts)


def restore_on_formula(
    formula: Formula, features: int, delta: Mapping[str, Tensor], facts: Mapping[str, Any]
) -> LinearOnFormula:
    """Restore the stored layer. Raises `IncompatibleModule` where it expects another number of features."""
    weight, bias = delta["weight"], delta["bias"]
    if weight.shape[-1] != features:
        raise IncompatibleModule(
            "it describes another formula than the weights belong to",
            where="module.json",
            got=f"{features:,} features",
            expected=f"{weight.shape[-1]:,}",
        )
    return LinearOnFormula(formula, weight, bias, facts)
