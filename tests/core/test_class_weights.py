"""Weights of classes: their scale, and the same optimum and loss as scikit-learn and PyTorch give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from graftwork.core.class_weights import ClassWeights, class_weights_of
from graftwork.core.kind import Kind
from graftwork.core.ragged import flat
from graftwork.core.task import Split, Task
from graftwork.registry import kinds, methods
from graftwork.testing.tiny_data import tiny_bench, tiny_dataset
from graftwork.train.linear_fit import StandardisedFeatures, fit_linear

CLASSES = ["a"] * 6 + ["b"] * 3 + ["c"]
LABELLED = [("x",), ("x", "y"), (), ("x",), ("y",), ("x",)]


def weights(kind: str, targets: list[object], given: object) -> tuple[Kind, ClassWeights, np.ndarray]:
    part = kinds.get(kind)
    task = part.resolve(Task("t", Path("t.csv"), kind=kind, settings={"class_weights": given}), targets)
    encoded = part.encode(targets, task)
    found = class_weights_of(task, part, encoded)
    assert found is not None
    return part, found, encoded


def test_balanced_is_that_of_scikit_learn() -> None:
    _, found, encoded = weights("classification", CLASSES, "balanced")
    np.testing.assert_allclose(found.factors, compute_class_weight("balanced", classes=np.arange(3), y=encoded))
    assert found.of_targets(encoded).mean() == pytest.approx(1)


@pytest.mark.parametrize("given", ["balanced", {"a": 1, "b": 2, "c": 7.5}])
def test_the_mean_weight_of_an_example_is_one(given: object) -> None:
    _, found, encoded = weights("classification", CLASSES, given)
    assert found.of_targets(encoded).mean() == pytest.approx(1)
    if given != "balanced":
        np.testing.assert_allclose(found.factors / found.factors[0], [1, 2, 7.5])
    words = [("a", "a", "b"), ("a",), ("c", "b", "a")]
    _, found, tags = weights("tagging", words, given)
    assert found.of_targets(tags).mean() == pytest.approx(1)
    _, found, marks = weights("multilabel", LABELLED, given if given == "balanced" else {"x": 3, "y": 1})
    np.testing.assert_allclose(found.of_targets(marks).mean(axis=0), 1)


def test_the_losses_are_those_of_torch() -> None:
    random = torch.Generator().manual_seed(0)
    _, found, encoded = weights("classification", CLASSES, "balanced")
    logits, targets = torch.randn(10, 3, generator=random), torch.from_numpy(encoded)
    expected = cross_entropy(logits, targets, weight=torch.tensor(found.factors, dtype=torch.float32))
    torch.testing.assert_close(found.loss(logits, targets), expected)  # over all rows the weights sum to their number
    parts = [found.loss(logits[rows], targets[rows]) * len(logits[rows]) for rows in (slice(0, 4), slice(4, 10))]
    torch.testing.assert_close((parts[0] + parts[1]) / 10, expected)
    _, found, marks = weights("multilabel", LABELLED, {"x": 3, "y": 1})
    logits, ones = torch.randn(6, 2, generator=random), torch.from_numpy(marks)
    weighted = binary_cross_entropy_with_logits(
        logits, ones, pos_weight=torch.tensor([3.0, 1.0]), weight=torch.tensor(found.factors[0], dtype=torch.float32)
    )
    torch.testing.assert_close(found.loss(logits, ones), weighted)


def test_the_linear_probe_finds_the_optimum_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    _, found, encoded = weights("classification", CLASSES * 6, "balanced")
    features = random.normal(size=(60, 4)) + encoded[:, None]
    scaled = StandardisedFeatures.of(torch.from_numpy(features).float())
    fit = fit_linear(scaled, torch.from_numpy(encoded), found, 3, 0.1)
    model = LogisticRegression(C=1 / (0.1 * 60), class_weight="balanced", tol=1e-8, max_iter=2000)
    model.fit(scaled.inputs.numpy(), encoded)
    ours = torch.softmax(fit.logits(torch.from_numpy(features).float()), dim=1).numpy()
    np.testing.assert_allclose(ours, model.predict_proba(scaled.inputs.numpy()), atol=2e-3)


def test_the_constant_answer_is_the_optimum_of_the_weighted_loss() -> None:
    for kind, targets, given in (
        ("classification", CLASSES, {"a": 1, "b": 2, "c": 9}),
        ("multilabel", LABELLED, "balanced"),
    ):
        part, found, encoded = weights(kind, targets, given)
        task = part.resolve(Task("t", Path("t.csv"), kind=kind), targets)
        logits = torch.tensor(found.constant(encoded, task), requires_grad=True)
        found.loss(logits.expand(len(encoded), -1), torch.from_numpy(encoded)).backward()
        assert float(logits.grad.abs().max()) < 1e-6


@pytest.mark.parametrize("name", ["tfidf_svm", "dan", "majority"])
def test_who_uses_them_is_recorded(name: str) -> None:
    dataset = tiny_dataset("classification")
    task = dataset.task.resolved(class_weights="balanced")
    few = flat(dataset.train.targets) == 0
    rows = np.concatenate([np.flatnonzero(few)[:3], np.flatnonzero(~few)])  # three rows of the first label
    train = Split("train", tuple(dataset.train.examples[row] for row in rows), dataset.train.targets[rows])
    plain, bench = (tiny_bench(replace(dataset, task=one, splits={**dataset.splits, "train": train}), None)
                    for one in (dataset.task, task))  # fmt: skip
    logits = [methods.get(name)().fit(one).logits(dataset.test.examples) for one in (plain, bench)]
    assert plain.heeded == {}
    if name == "majority":
        assert bench.heeded == {} and np.array_equal(*logits)
    else:
        assert bench.heeded["class_weights"][task.labels[0]] > 1
        assert (logits[1] - logits[0])[:, 0].mean() > (logits[1] - logits[0])[:, 1].mean(), "the rare label gains"
