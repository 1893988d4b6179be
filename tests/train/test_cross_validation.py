"""Cross-validation: held-out rows of train are predicted as scikit-learn predicts them, and choose the penalty."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from graftwork.core.method import Workbench
from graftwork.core.tally import Tally
from graftwork.core.task import Dataset, Split
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train import cross_validation
from graftwork.train.cross_validation import FOLDS, cross_validate, folds_of
from graftwork.train.linear_fit import STRENGTHS

BACKBONE = open_backbone("tiny_text", precision="fp32")


def bench_of(data: Dataset) -> Workbench:
    return tiny_bench(data, BACKBONE)


def with_train(data: Dataset, rows: list[int]) -> Dataset:
    """The data set with these rows of train alone, in this order."""
    train = Split("train", tuple(data.train.examples[row] for row in rows), data.train.targets[rows])
    return replace(data, splits={**data.splits, "train": train})


def test_held_out_rows_are_predicted_as_by_logistic_regressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "TOLERANCE", 1e-9)
    bench = bench_of(tiny_dataset(rows=60))
    train, folds = bench.frozen(bench.train, None), folds_of(bench)
    targets = np.asarray(bench.train.targets)
    targets[::7] = 1 - targets[::7]  # so that no penalty is right everywhere
    inputs = train.pooled(2).double().numpy()
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    found, least = {}, math.inf
    for strength in STRENGTHS:
        right, likely = np.zeros(len(targets), dtype=bool), np.zeros(len(targets))
        for fold in range(FOLDS):
            known = folds != fold
            c = 2 / (strength * known.sum())  # one vector stands for two
            theirs = LogisticRegression(C=c, tol=1e-10, max_iter=10_000).fit(inputs[known], targets[known])
            likely[~known] = theirs.predict_proba(inputs[~known])[np.arange((~known).sum()), targets[~known]]
            right[~known] = likely[~known] > 0.5
        found[strength], least = float(right.mean()), min(least, float(-np.log(likely).mean()))
    assert found[max(STRENGTHS)] < max(found.values()) > found[min(STRENGTHS)]
    ours = cross_validate(bench, train, lambda: train.pooled(2), folds, Tally())
    assert ours.loss == pytest.approx(least, rel=0.01)
    assert ours.score == pytest.approx(max(found.values()), abs=1 / 60)
    assert found[ours.strength] == pytest.approx(ours.score, abs=1 / 60)


@pytest.mark.parametrize("kind", ["multilabel", "regression", "tagging", "span", "choice", "ranking"])
def test_every_kind(kind: str) -> None:
    bench = bench_of(tiny_dataset(kind))
    train = bench.frozen(bench.train, None)
    found = cross_validate(bench, train, lambda: train.pooled(2), folds_of(bench), Tally())
    assert found.strength in STRENGTHS and math.isfinite(found.score) and math.isfinite(found.loss)


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


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_rows_than_folds(rows: int) -> None:
    bench = bench_of(with_train(tiny_dataset(), list(range(rows))))
    train = bench.frozen(bench.train, None)
    found = cross_validate(bench, train, lambda: train.pooled(2), folds_of(bench), Tally())
    assert found.strength in STRENGTHS
