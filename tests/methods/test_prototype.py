"""Prototypes: the nearest mean by definition, as one layer, with logits that mean something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy, linear

from graftwork.methods.prototype import Prototype, nearest_mean, sharpness
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.folds import FOLDS, folds_of
from graftwork.train.linear_fit import kept_targets

BACKBONE = open_backbone("tiny_text", precision="fp32")
CLASSIFICATION = kinds.get("classification")


def some(rows: int = 60, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    targets = torch.arange(rows) % classes
    return torch.randn(rows, 8, generator=random) + 3 + targets[:, None] * 0.2, targets


def test_euclid_is_the_nearest_mean() -> None:
    features, targets = some()
    layer = nearest_mean(features, targets, 4, "euclid")
    means = torch.stack([features[targets == one].mean(dim=0) for one in range(4)])
    assert torch.equal(linear(features, *layer).argmax(dim=1), torch.cdist(features, means).argmin(dim=1))


def test_cosine_is_the_nearest_angle_from_the_centre() -> None:
    features, targets = some()
    layer = nearest_mean(features, targets, 4, "cosine")
    means = torch.stack([features[targets == one].mean(dim=0) for one in range(4)])
    centre = means.mean(dim=0)
    angles = cosine_similarity((features - centre)[:, None], (means - centre)[None], dim=2)
    assert torch.equal(linear(features, *layer).argmax(dim=1), angles.argmax(dim=1))


@pytest.mark.parametrize("distance", ["cosine", "euclid"])
def test_a_class_without_rows_is_never_the_nearest(distance: str) -> None:
    features, targets = some()
    layer = nearest_mean(features, torch.where(targets == 3, 0, targets), 4, distance)
    logits = linear(torch.cat([features, 100 * torch.randn(500, 8)]), *layer)
    assert bool(torch.isfinite(logits).all()) and 3 not in linear(features, *layer).argmax(dim=1)


def test_one_row_of_each_class_is_enough() -> None:
    features = torch.eye(3, 8)
    for distance in ("cosine", "euclid"):
        layer = nearest_mean(features, torch.arange(3), 3, distance)
        assert linear(features, *layer).argmax(dim=1).tolist() == [0, 1, 2]


def test_the_sharpness_is_where_the_loss_is_least() -> None:
    logits, targets = torch.randn(200, 3, generator=torch.Generator().manual_seed(1)), torch.arange(200) % 3
    logits[torch.arange(200), targets] += 1.0
    best = sharpness(logits, targets, CLASSIFICATION)
    losses = [float(cross_entropy(factor * best * logits, targets)) for factor in (0.9, 1.0, 1.1)]
    assert losses[1] == min(losses)


def test_the_block_and_temperature_predict_held_out_rows_best() -> None:
    data = tiny_dataset(rows=60)
    data.train.targets[::7] = 1 - data.train.targets[::7]  # type: ignore[index, operator]
    bench = tiny_bench(data, BACKBONE)
    fitted = Prototype().fit(bench)
    frozen, folds, tried = bench.frozen(bench.train, None), folds_of(bench), fitted.facts["held_out_loss_by_block"]
    targets = kept_targets(bench.train, frozen.encoded)
    for block in range(3):
        features, logits = frozen.pooled(block), torch.zeros(60, 2)
        for fold in range(FOLDS):
            here = torch.from_numpy(folds == fold)
            logits[here] = linear(features[here], *nearest_mean(features[~here], targets[~here], 2, "euclid"))
        factor = sharpness(logits, targets, CLASSIFICATION)
        assert tried[str(block)] == pytest.approx(float(cross_entropy(factor * logits, targets)), rel=1e-3)
    block = int(fitted.facts["block"])
    assert set(tried) == {"0", "1", "2"} and tried[str(block)] == min(tried.values())
    layer = nearest_mean(frozen.pooled(block), targets, 2, "euclid")
    assert torch.allclose(fitted.weight, fitted.facts["sharpness"] * layer[0])
    assert fitted.trained_parameters == 2 * BACKBONE.card.width + 2
    majority = np.bincount(data.test.targets).max() / len(data.test.targets)
    assert (fitted.logits(data.test.examples).argmax(axis=1) == data.test.targets).mean() > majority


def test_validation_plays_no_part() -> None:
    data = tiny_dataset()
    other = replace(data.validation, targets=1 - data.validation.targets)  # type: ignore[operator]
    turned = replace(data, splits={**data.splits, "validation": other})
    one, two = (Prototype().fit(tiny_bench(rows, BACKBONE)) for rows in (data, turned))
    assert one.facts == two.facts
    assert np.array_equal(one.logits(data.test.examples), two.logits(data.test.examples))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_class_with_one_row_can_not_be_held_out(rows: int) -> None:
    """With two classes of one row each nothing is held out that other rows know: the output, at temperature 1."""
    data = tiny_dataset()
    train = replace(data.train, examples=data.train.examples[:rows], targets=np.arange(rows) % 2)
    fitted = Prototype().fit(tiny_bench(replace(data, splits={**data.splits, "train": train}), BACKBONE))
    assert np.isfinite(fitted.logits(data.test.examples)).all()
    if rows < 3:
        assert fitted.facts["block"] == "2" and fitted.facts["sharpness"] == 1


def test_other_kinds_and_words_are_refused() -> None:
    assert "one class of each example, not regression" in Prototype().unfit(tiny_dataset("regression").task, None)
    assert "one of cosine, euclid, not 'l1'" in Prototype(distance="l1").unfit(tiny_dataset().task, None)
