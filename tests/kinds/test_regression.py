"""Regression: parsing, what the data decides, numbers and back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds

KIND = kinds.get("regression")
TASK = Task("t", Path("t.csv"), kind="regression")


@pytest.mark.parametrize(("text", "value"), [("3", 3.0), ("-0.5", -0.5), ("+1e-3", 0.001), (".5", 0.5), ("2.", 2.0)])
def test_numbers(text: str, value: float) -> None:
    assert KIND.parse(text, TASK, "f:1") == value


@pytest.mark.parametrize("text", ["", "NA", "nan", "inf", "1e999", "1,5", "1_000", "٣", " 3", "0x10", ("1", "2")])
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="not a finite number") as caught:
        KIND.parse(text, TASK, "f.csv:7")
    assert caught.value.where == "f.csv:7"
    assert caught.value.got == repr(str(text))
    assert ("decimal point" in caught.value.do) == (text == "1,5")


def test_resolve() -> None:
    task = KIND.resolve(TASK, [1.0, 3.0])
    assert (task.settings.scale, task.metrics, task.labels) == ((2.0, 1.0), ("pearson", "spearman"), ())
    with pytest.raises(DataError, match="no usable spread"):
        KIND.resolve(TASK, [0.1] * 3)


def test_strata_are_tenths_where_there_are_rows_enough() -> None:
    values = np.random.default_rng(0).normal(size=1000).tolist()
    assert set(Counter(KIND.strata(values)).values()) == {100}
    assert len(set(KIND.strata(values[:35]))) == 3
    assert set(KIND.strata([1.0] * 10)) == {0}


def test_numbers_and_back() -> None:
    task = TASK.resolved(scale=(2.0, 0.5))
    encoded = KIND.encode([1.0, 3.0], task)
    assert (encoded.dtype, encoded.tolist()) == (np.float32, [-2.0, 2.0])
    logits = np.array([[-2.0], [2.0]])
    assert KIND.predictions(logits, task).tolist() == [-2.0, 2.0]
    assert KIND.decode(logits, task) == [{"value": 1.0}, {"value": 3.0}]
    assert KIND.constant(encoded, task).tolist() == [0.0]
    assert KIND.outputs(task) == 1


def test_loss_is_the_mean_squared_error() -> None:
    loss = KIND.loss(torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 4.0]))
    assert float(loss) == 2.5
