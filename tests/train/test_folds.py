"""Folds of train: classes are spread, equal inputs stay together, and with many rows some are never held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graftwork.core.method import Workbench
from graftwork.core.task import Dataset, Split
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import folds as of_train
from graftwork.train.folds import FOLDS, folds_of


def bench_of(data: Dataset) -> Workbench:
    return tiny_bench(data, None)


def with_train(data: Dataset, rows: list[int]) -> Dataset:
    """The data set with these rows of train alone, in this order."""
    train = Split("train", tuple(data.train.examples[row] for row in rows), data.train.targets[rows])
    return replace(data, splits={**data.splits, "train": train})


def test_folds_spread_classes_and_keep_equal_texts_together() -> None:
    data = tiny_dataset(rows=40)
    twice = with_train(data, [*range(40), *range(40)])
    bench = bench_of(twice)
    folds, targets = folds_of(bench), np.asarray(twice.train.targets)
    assert (folds[:40] == folds[40:]).all()
    texts = [example.inputs["text"] for example in twice.train.examples]
    for text in texts:
        assert len({fold for fold, other in zip(folds, texts, strict=True) if other == text}) == 1
    for label in (0, 1):
        counts = np.bincount(folds[targets == label], minlength=FOLDS)
        assert counts.max() - counts.min() <= 4


def test_folds_do_not_depend_on_the_order_of_the_rows() -> None:
    data, turned = tiny_dataset(rows=40), list(range(40))[::-1]
    assert (folds_of(bench_of(with_train(data, turned))) == folds_of(bench_of(data))[turned]).all()


@pytest.mark.parametrize(("enough", "held"), [(60, 5), (40, 4), (21, 2), (5, 1), (1, 1)])
def test_folds_beyond_enough_rows_are_never_held_out(enough: int, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_train, "ENOUGH", enough)
    folds = folds_of(bench_of(tiny_dataset(rows=60)))
    assert set(folds.tolist()) - {-1} == set(range(held))
    assert (-1 in folds) == (held < FOLDS)
    assert (folds >= 0).sum() >= min(enough, 50)
