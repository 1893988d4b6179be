"""The linear fit reaches the optimum that scikit-learn finds of the same problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from graftwork.core.kind import Kind
from graftwork.registry import kinds
from graftwork.train import linear_fit
from graftwork.train.linear_fit import STRENGTHS, LinearFit, StandardisedFeatures, fit_best_linear, fit_linear

N, P, C = 60, 8, 3


def features() -> Tensor:
    """(N, P), each column on a scale and about a place of its own."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(N, P, generator=random) * torch.logspace(-1, 2, P) + torch.arange(P)


def standardised(inputs: Tensor) -> Any:
    return ((inputs - inputs.mean(0)) / inputs.std(0, correction=0)).double().numpy()


def scores() -> Tensor:
    """(N, C) noisy linear scores, from which targets are made."""
    random = torch.Generator().manual_seed(1)
    inputs = torch.from_numpy(standardised(features())).float()
    return inputs @ torch.randn(P, C, generator=random) + torch.randn(N, C, generator=random)


def objective(kind: Kind, logits: Tensor, targets: Tensor, weight: Tensor, strength: float) -> float:
    return float(kind.loss(logits, targets) + strength / 2 * weight.square().sum())


@pytest.mark.parametrize("strength", [0.001, 0.1])
def test_classes_as_logistic_regression(strength: float) -> None:
    kind, targets, inputs = kinds.get("classification"), scores().argmax(1), standardised(features())
    fit = fit_linear(StandardisedFeatures.of(features()), targets, kind, C, strength)
    theirs = LogisticRegression(C=1 / (strength * N), tol=1e-10, max_iter=10_000).fit(inputs, targets.numpy())
    logits = torch.from_numpy(theirs.decision_function(inputs))
    own = fit.logits(features()).double()
    own = own - own.mean(1, keepdim=True)  # softmax does not see a shift of all logits
    logits = logits - logits.mean(1, keepdim=True)
    torch.testing.assert_close(own, logits, atol=0.02 * float(logits.abs().max()), rtol=0)
    best = objective(kind, logits, targets, torch.from_numpy(theirs.coef_), strength)
    scale = features().std(0, correction=0)
    assert objective(kind, own, targets, fit.weight * scale, strength) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("strength", [0.001, 0.1])
def test_labels_as_one_logistic_regression_each(strength: float) -> None:
    kind, targets, inputs = kinds.get("multilabel"), (scores() > 0).float(), standardised(features())
    fit = fit_linear(StandardisedFeatures.of(features()), targets, kind, C, strength)
    columns = []
    for column in targets.numpy().T:
        theirs = LogisticRegression(C=1 / (strength * N * C), tol=1e-10, max_iter=10_000).fit(inputs, column)
        columns.append(theirs.decision_function(inputs))
    logits = np.stack(columns, axis=1)
    np.testing.assert_allclose(fit.logits(features()).double().numpy(), logits, atol=0.02 * np.abs(logits).max())


@pytest.mark.parametrize("strength", [0.001, 0.1])
def test_numbers_as_ridge(strength: float) -> None:
    kind, targets, inputs = kinds.get("regression"), scores()[:, 0], standardised(features())
    fit = fit_linear(StandardisedFeatures.of(features()), targets, kind, 1, strength)
    theirs = Ridge(alpha=strength * N / 2).fit(inputs, targets.numpy())
    found, expected = fit.logits(features()).squeeze(1).double().numpy(), theirs.predict(inputs)
    np.testing.assert_allclose(found, expected, atol=0.005 * np.abs(expected).max())


def test_a_warm_start_ends_at_the_same_optimum_sooner() -> None:
    kind, targets = kinds.get("classification"), scores().argmax(1)
    cold = fit_linear(StandardisedFeatures.of(features()), targets, kind, C, 0.01)
    near = fit_linear(StandardisedFeatures.of(features()), targets, kind, C, 0.012)
    warm = fit_linear(StandardisedFeatures.of(features()), targets, kind, C, 0.01, near)
    assert warm.evaluations < cold.evaluations
    torch.testing.assert_close(warm.logits(features()), cold.logits(features()), atol=0.05, rtol=0.01)


def test_a_constant_feature_does_no_harm() -> None:
    inputs = torch.cat([features(), torch.full((N, 1), 3.0)], dim=1)
    fit = fit_linear(StandardisedFeatures.of(inputs), scores().argmax(1), kinds.get("classification"), C, 0.01)
    assert fit.weight.isfinite().all() and fit.weight[:, -1].abs().max() == 0


def test_features_are_standardised_in_place() -> None:
    given = features()
    found = StandardisedFeatures.of(given)
    assert found.inputs.data_ptr() == given.data_ptr()
    np.testing.assert_allclose(found.inputs.numpy(), standardised(features()), atol=1e-5)


def test_the_same_bits_again() -> None:
    one, two = (
        fit_linear(StandardisedFeatures.of(features()), scores().argmax(1), kinds.get("classification"), C, 0.01)
        for _ in range(2)
    )
    assert torch.equal(one.weight, two.weight) and torch.equal(one.bias, two.bias)


def test_the_strength_that_validation_likes_best_is_kept() -> None:
    kind, targets, asked = kinds.get("classification"), scores().argmax(1), []

    def score(logits: Tensor) -> float:
        asked.append(float(logits.abs().mean()))
        return -abs(len(asked) - 2)  # the second one tried

    fit, reached, flops = fit_best_linear((features(), targets), features(), kind, C, score)
    assert fit.strength == sorted(STRENGTHS, reverse=True)[1] and reached == 0
    assert asked == sorted(asked)  # weaker penalties, larger logits
    assert flops > len(STRENGTHS) * 4 * N * P * C


def test_a_score_that_is_no_number_is_never_the_best() -> None:
    answers = iter([math.nan, 0.4, math.nan, 0.5, 0.1, 0.2])
    asked = (features(), scores().argmax(1))
    fit, reached, _ = fit_best_linear(asked, features(), kinds.get("classification"), C, lambda logits: next(answers))
    assert reached == 0.5 and fit.strength == sorted(STRENGTHS, reverse=True)[3]


def test_a_fit_does_not_start_from_weights_that_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def fit(*arguments: Any) -> LinearFit:
        starts.append(arguments[-1])
        return LinearFit(torch.full((C, P), math.nan if len(starts) == 1 else 1.0), torch.zeros(C), 1.0, 1)

    monkeypatch.setattr(linear_fit, "fit_linear", fit)
    asked = (features(), scores().argmax(1))
    fit_best_linear(asked, features(), kinds.get("classification"), C, lambda logits: 0.5, strengths=(1.0, 2.0, 3.0))
    assert starts[:2] == [None, None] and starts[2] is not None
