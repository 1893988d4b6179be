"""Majority: the best answer that never looks at the input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.kind import ChoosesThresholds
from graftwork.core.method import Setting
from graftwork.core.ragged import Numbers
from graftwork.core.task import Dataset, Task
from graftwork.methods.majority import Majority
from graftwork.registry import kinds
from graftwork.targets.choices import encode_marks
from graftwork.testing import tiny_bench, tiny_dataset


def with_targets(data: Dataset, targets: Numbers) -> Dataset:
    splits = dict(data.splits) | {"train": replace(data.train, targets=targets)}
    return replace(data, splits=splits)


def test_classes_are_answered_by_their_shares() -> None:
    data = tiny_dataset()
    fitted = Majority().fit(tiny_bench(with_targets(data, np.array([1] * 15 + [0] * 5)), None))
    logits = fitted.logits(data.test.examples)
    answers = kinds.get("classification").decode(logits, data.task)
    assert logits.shape == (len(data.test.examples), 2)
    assert {answer["label"] for answer in answers} == {data.task.labels[1]}
    assert answers[0]["probabilities"] == pytest.approx({data.task.labels[0]: 0.25, data.task.labels[1]: 0.75})


def test_labels_are_those_of_more_than_half() -> None:
    data = tiny_dataset("multilabel")
    targets = np.array([[1, 0]] * 12 + [[0, 1]] * 8, dtype=np.float32)
    fitted = Majority().fit(tiny_bench(with_targets(data, targets), None))
    answer = kinds.get("multilabel").decode(fitted.logits(data.test.examples), data.task)[0]
    assert answer["label"] == [data.task.labels[0]]
    assert list(answer["probabilities"].values()) == pytest.approx([0.6, 0.4])


def test_labels_that_are_frequent_on_validation_are_answered_though_less_than_half_have_them() -> None:
    rows, kind = np.arange(100), kinds.get("multilabel")
    targets = np.stack([rows < 15, rows % 8 == 0, rows >= 95], axis=1).astype(np.float32)  # 15, 13 and 5 of 100
    task = Task("t", Path("t.csv"), kind="multilabel", labels=("a", "b", "c"), settings={"thresholds": "validation"})
    logits = np.tile(kind.constant(targets, task), (len(rows), 1))
    assert isinstance(kind, ChoosesThresholds)
    assert kind.predictions(logits + kind.shift(logits, targets, task), task)[0].tolist() == [1, 1, 0]
    assert kind.predictions(logits, task)[0].tolist() == [0, 0, 0]


def test_numbers_are_answered_by_their_mean() -> None:
    data = tiny_dataset("regression")
    fitted = Majority().fit(tiny_bench(data, None))
    answer = kinds.get("regression").decode(fitted.logits(data.test.examples), data.task)[0]
    assert answer["value"] == pytest.approx(np.mean([example.target for example in data.train.examples]), abs=1e-6)


def test_it_costs_nothing_and_is_restored() -> None:
    data = tiny_dataset()
    fitted = Majority().fit(tiny_bench(data, None))
    assert fitted.trained_parameters == 0 and fitted.flops(data.test.examples) == (0.0, "counter")
    setting = Setting(data.task, kinds.get("classification"), None)
    restored = Majority().restore(setting, fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))
    assert all(isinstance(array, np.ndarray) for array in fitted.delta().values())  # no torch is needed to store them


def test_it_fits_everything() -> None:
    assert Majority().unfit(tiny_dataset().task, None) == ""


@pytest.mark.parametrize("kind", ["choice", "ranking"])
def test_choices_are_answered_by_their_place(kind: str) -> None:
    data = tiny_dataset(kind)
    targets = encode_marks([(0, 1)] * 15 + [(1, 0)] * 5)
    fitted = Majority().fit(tiny_bench(with_targets(data, targets), None))
    logits = fitted.logits(data.test.examples)
    assert logits.counts.tolist() == [len(example.target) for example in data.test.examples]
    assert {rows[:, 0].argmax() for rows in logits} == {1}
    assert np.exp(logits.flat[:2, 0]) == pytest.approx([0.25, 0.75])
