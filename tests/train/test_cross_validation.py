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
from graftwork.train import cross_validation, folds
from graftwork.train.cross_validation import cross_validate, fold_examples, fold_pass
from graftwork.train.folds import FOLDS, folds_of
from graftwork.train.linear_fit import STRENGTHS, fit_linear

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
    train, of_rows = bench.frozen(bench.train, None), folds_of(bench)
    targets = np.asarray(bench.train.targets)
    targets[::7] = 1 - targets[::7]  # so that no penalty is right everywhere
    inputs = train.pooled(2).double().numpy()
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    found, least = {}, math.inf
    for strength in STRENGTHS:
        right, likely = np.zeros(len(targets), dtype=bool), np.zeros(len(targets))
        for fold in range(FOLDS):
            known = of_rows != fold
            c = 2 / (strength * known.sum())  # one vector stands for two
            theirs = LogisticRegression(C=c, tol=1e-10, max_iter=10_000).fit(inputs[known], targets[known])
            likely[~known] = theirs.predict_proba(inputs[~known])[np.arange((~known).sum()), targets[~known]]
            right[~known] = likely[~known] > 0.5
        found[strength], least = float(right.mean()), min(least, float(-np.log(likely).mean()))
    assert found[max(STRENGTHS)] < max(found.values()) > found[min(STRENGTHS)]
    ours = cross_validate(bench, lambda: train.pooled(2), fold_pass(bench, train), Tally())
    assert ours.loss == pytest.approx(least, rel=0.01)
    assert ours.score == pytest.approx(max(found.values()), abs=1 / 60)
    assert found[ours.strength] == pytest.approx(ours.score, abs=1 / 60)


@pytest.mark.parametrize("kind", ["multilabel", "regression", "tagging", "span", "choice", "ranking"])
def test_every_kind(kind: str) -> None:
    bench = bench_of(tiny_dataset(kind))
    train = bench.frozen(bench.train, None)
    found = cross_validate(bench, lambda: train.pooled(2), fold_pass(bench, train), Tally())
    assert found.strength in STRENGTHS and math.isfinite(found.score) and math.isfinite(found.loss)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_fewer_rows_than_folds(rows: int) -> None:
    bench = bench_of(with_train(tiny_dataset(), list(range(rows))))
    train = bench.frozen(bench.train, None)
    found = cross_validate(bench, lambda: train.pooled(2), fold_pass(bench, train), Tally())
    assert found.strength in STRENGTHS


def test_rows_that_are_never_held_out_train_every_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With labels of its own in the folds that are left out, no score of the others changes."""
    monkeypatch.setattr(folds, "ENOUGH", 20)
    bench = bench_of(tiny_dataset(rows=60))
    train, rows = bench.frozen(bench.train, None), fold_pass(bench, bench.frozen(bench.train, None))
    held = int(rows.held_out.sum())
    assert 20 <= held < 30
    sizes = []

    def recorded(features, *args):  # type: ignore[no-untyped-def]
        sizes.append(len(features.inputs))
        return fit_linear(features, *args)

    monkeypatch.setattr(cross_validation, "fit_linear", recorded)
    found = cross_validate(bench, lambda: train.pooled(2), rows, Tally())
    assert set(sizes) == {60 - int((rows.folds == number).sum()) for number in (0, 1)}
    assert found.score * held == pytest.approx(round(found.score * held)), "a share of the rows held out"


def test_examples_are_folded_as_their_pass_is() -> None:
    bench = bench_of(tiny_dataset(rows=40))
    train = bench.frozen(bench.train, None)
    features = train.pooled(2)
    one, two = (
        cross_validate(bench, features.clone, rows, Tally()) for rows in (fold_examples(bench), fold_pass(bench, train))
    )
    assert one == two
