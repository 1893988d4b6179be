"""Targets with a teacher beside the labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graftwork.core.ragged import Ragged, flat
from graftwork.registry import kinds
from graftwork.ship.taught_targets import TaughtLoss, taught_targets
from graftwork.testing import tiny_dataset

LABELLED = 4


def lesson(kind: str) -> tuple[TaughtLoss, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A loss of half label, half teacher; targets of all rows, their labels alone, and a student's logits."""
    data, own = tiny_dataset(kind), kinds.get(kind)
    told = data.train.targets[:LABELLED]
    draw, outputs = np.random.default_rng(0), own.outputs(data.task)
    if isinstance(told, Ragged):
        counts = (told.counts, np.array([2, 3]))
        teacher = [Ragged(draw.normal(size=(int(one.sum()), outputs)), one) for one in counts]
    else:
        teacher = [draw.normal(size=(LABELLED, outputs)), draw.normal(size=(2, outputs))]
    joined = torch.from_numpy(flat(taught_targets(told, teacher)))
    logits = torch.from_numpy(draw.normal(size=(len(joined), outputs))).float()
    encoded = torch.from_numpy(flat(told))
    loss = TaughtLoss(own, tuple(encoded.shape[1:]), encoded.dtype, outputs, 2.0, 0.5, 3.0)
    return loss, joined, encoded, logits


@pytest.mark.parametrize("kind", ["classification", "regression", "multilabel", "tagging"])
def test_labelled_rows_learn_from_both_and_others_from_the_teacher(kind: str) -> None:
    loss, targets, labels, logits = lesson(kind)
    own, known = kinds.get(kind), len(labels)
    teacher = targets[:, -logits.shape[1] :]
    expected = own.loss(logits[:known], labels) * known / len(targets)  # type: ignore[attr-defined]
    expected = (expected + own.teaching_loss(logits, teacher, 2.0)) / 2  # type: ignore[attr-defined]
    assert float(loss.loss(logits, targets)) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("kind", ["classification", "regression", "multilabel", "tagging"])
def test_losses_of_parts_add_up(kind: str) -> None:
    loss, targets, labels, logits = lesson(kind)
    for cut in (1, len(labels), len(targets) - 1):
        parts = [(logits[:cut], targets[:cut]), (logits[cut:], targets[cut:])]
        sums = sum(loss.weight(told) * float(loss.loss(*part)) for part in parts for told in part[1:])
        assert sums == pytest.approx(loss.weight(targets) * float(loss.loss(logits, targets)), rel=1e-5)


def test_constant_is_that_of_the_labels() -> None:
    data, kind = tiny_dataset("tagging"), kinds.get("tagging")
    told = data.train.targets[:LABELLED]
    assert isinstance(told, Ragged)
    teacher = [Ragged(np.zeros((len(one), 4)), np.array([len(one)])) for one in (flat(told), range(50))]
    joined = taught_targets(told, teacher)
    found = TaughtLoss(kind, (), torch.int64, 4, 1.0, 0.5, 0.0).constant(joined, data.task)
    assert np.allclose(found, kind.constant(told, data.task))


def test_features_are_learnt_where_the_teacher_has_them() -> None:
    loss, targets, _, _ = lesson("classification")
    pooled = torch.ones(len(targets), 4)
    assert float(loss.loss_of_features(pooled, targets)) == 0
    with_features = torch.cat([targets, torch.full((len(targets), 4), 3.0)], dim=1)
    assert float(loss.loss_of_features(pooled, with_features)) == pytest.approx(3 * 4)
