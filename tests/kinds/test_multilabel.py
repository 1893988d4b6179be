"""Multilabel: parsing, what the data decides, numbers and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from graftwork.core.kind import ChoosesThresholds
from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.kinds.multilabel import best_threshold
from graftwork.registry import kinds, metrics

KIND = kinds.get("multilabel")
TASK = Task("t", Path("t.csv"), kind="multilabel")


def test_bars_and_lists_mean_the_same() -> None:
    for text in ("b|a", ("b", "a"), "a|b"):
        assert KIND.parse(text, TASK, "f:1") == ("a", "b")
    assert KIND.parse("", TASK, "f:1") == KIND.parse((), TASK, "f:1") == ()
    assert KIND.parse("a | b", TASK, "f:1") == (" b", "a "), "nothing is stripped"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a||b", "the label is empty"),
        (" ", "the label is empty"),
        ("a|a", "occurs twice"),
        (("1", "0", "1"), "looks like a vector of 0 and 1"),
        ("['a', 'b']", "a list written as text"),
        ('("a",)', "a list written as text"),
        ("[]", "a list written as text"),
        ("a|z", "unknown label 'z'"),
    ],
)
def test_bad_labels(text: str | tuple[str, ...], what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        KIND.parse(text, TASK.resolved(labels=("a", "b")), "f.csv:7")
    assert caught.value.where == "f.csv:7"


def test_resolve() -> None:
    task = KIND.resolve(TASK, [("b",), (), ("a", "b")])
    assert (task.labels, task.metrics, task.settings.thresholds) == (("a", "b"), ("macro_f1", "accuracy"), "validation")
    with pytest.raises(DataError, match="no row has a label"):
        KIND.resolve(TASK, [(), ()])
    with pytest.raises(DataError, match="looks like a vector of 0 and 1"):
        KIND.resolve(TASK, [("0", "1"), ("0", "1")])


def test_numbers_may_name_labels() -> None:
    assert KIND.resolve(TASK, [("0", "1"), ("0",), ("1", "27")]).labels == ("0", "1", "27")
    assert KIND.parse("[sic]|a", TASK, "f:1") == ("[sic]", "a")


def test_strata_fall_back_to_the_rarest_label() -> None:
    targets = [("a",)] * 12 + [("a", "b")] * 2 + [("b",)] * 3 + [()]
    assert KIND.strata(targets) == [("a",)] * 12 + ["b"] * 5 + [()]


def test_numbers_and_back() -> None:
    task = KIND.resolve(TASK, [("b",), ("a", "b")])
    encoded = KIND.encode([("b",), (), ("a", "b")], task)
    assert (encoded.dtype, encoded.tolist()) == (np.float32, [[0, 1], [0, 0], [1, 1]])
    logits = np.array([[0.0, np.log(3)], [-1.0, -2.0]])
    assert KIND.predictions(logits, task).tolist() == [[0, 1], [0, 0]]
    first, second = KIND.decode(logits, task)
    assert (first["label"], second["label"]) == (["b"], [])
    assert first["probabilities"] == pytest.approx({"a": 0.5, "b": 0.75})
    assert KIND.outputs(task) == 2
    with pytest.raises(DataError, match="unknown label 'c'"):
        KIND.encode([("c",)], task)


def test_loss_and_constant() -> None:
    loss = KIND.loss(torch.tensor([[0.0, np.log(3)]]), torch.tensor([[1.0, 1.0]]))
    assert float(loss) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    constant = KIND.constant(np.array([[1, 0], [1, 0], [1, 0], [0, 0]], dtype=np.float32), TASK)
    assert constant[0] == pytest.approx(np.log(3))
    assert constant[1] < -20


def brute_force(logits: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    """The highest F1 that any threshold reaches."""
    values = np.unique(logits)
    return max(f1_score(wanted, logits > cut) for cut in [values[0] - 1, *((values[1:] + values[:-1]) / 2)])


def test_the_threshold_of_highest_f1() -> None:
    random = np.random.default_rng(0)
    for rows in (1, 2, 7, 20):
        for _ in range(3):
            logits = np.round(random.normal(size=rows), 1)  # with equal ones among them
            wanted = random.random(rows) < 0.4
            wanted[random.integers(rows)] = True
            found = best_threshold(logits, wanted)
            assert f1_score(wanted, logits > found) == pytest.approx(brute_force(logits, wanted))


def test_of_equally_good_thresholds_the_one_nearest_to_a_half() -> None:
    assert best_threshold(np.array([3.0, 2.0, -2.0, -3.0]), np.array([True, True, False, False])) == 0
    assert best_threshold(np.array([-1.0, -2.0, -3.0]), np.array([True, False, False])) == pytest.approx(-1.5)
    assert best_threshold(np.array([0.5, 0.5]), np.array([True, False])) < 0.5, "equal logits have one answer"


def test_rare_labels_share_a_threshold() -> None:
    task = Task("t", Path("t.csv"), kind="multilabel", labels=("a", "b", "c"), settings={"thresholds": "validation"})
    random = np.random.default_rng(1)
    targets = (random.random((60, 3)) < np.array([0.5, 0.05, 0.05])).astype(np.float32)
    targets[:3] = 1
    logits = 4 * targets + random.normal(size=(60, 3)) - np.array([5.0, 6.0, 6.0])
    part = kinds.get("multilabel")
    assert isinstance(part, ChoosesThresholds)
    shift = part.shift(logits, targets, task)
    assert shift is not None
    assert shift[0] != shift[1] == shift[2]
    assert score(metrics.get("macro_f1"), targets, part.predictions(logits, task), task) < 0.2
    assert score(metrics.get("macro_f1"), targets, part.predictions(logits + shift, task), task) > 0.9
    assert part.shift(logits, targets, task.resolved(thresholds="half")) is None
    assert part.shift(logits, np.zeros_like(targets), task) is None
