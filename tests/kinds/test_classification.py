"""Classification: parsing, what the data decides, numbers and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.task import Task
from graftwork.errors import ConfigError, DataError
from graftwork.module.confidence import confidence_of
from graftwork.registry import kinds

KIND = kinds.get("classification")
TASK = Task("t", Path("t.csv"))
LOGITS = np.array([[0.0, np.log(3)], [1000.0, 0.0]])


def test_labels_are_the_text_of_the_file() -> None:
    assert [KIND.parse(text, TASK, "f:1") for text in ("NA", " a ", "1.0")] == ["NA", " a ", "1.0"]


@pytest.mark.parametrize(
    ("text", "labels", "what", "more"),
    [
        ("", (), "the label is empty", "fill the label in"),
        (" \t", (), "the label is empty", ""),
        (("a", "b"), (), "a list of labels", "--kind multilabel"),
        ("spma", ("ham", "spam"), "unknown label 'spma'", "did you mean 'spam'?"),
    ],
)
def test_bad_labels(text: str, labels: tuple[str, ...], what: str, more: str) -> None:
    with pytest.raises(DataError) as caught:
        KIND.parse(text, TASK.resolved(labels=labels), "f.csv:7")
    assert caught.value.where == "f.csv:7"
    assert what in caught.value.what
    assert more in caught.value.message


def test_resolve_two_classes() -> None:
    task = KIND.resolve(TASK, ["b", "a", "b"])
    assert (task.labels, task.settings.positive) == (("a", "b"), "a")
    assert task.metrics == ("accuracy", "macro_f1", "f1", "matthews")
    assert KIND.resolve(TASK, ["0", "1"]).settings.positive == "1", "equally rare: the last in order"
    assert KIND.resolve(TASK.resolved(positive="b"), ["b", "a", "b"]).settings.positive == "b"


def test_resolve_more_classes() -> None:
    task = KIND.resolve(TASK, ["b", "a", "c"])
    assert (task.labels, task.settings.positive, task.metrics) == (("a", "b", "c"), None, ("accuracy", "macro_f1"))
    kept = KIND.resolve(TASK.resolved(metrics=("matthews",), labels=("c", "b", "a")), ["b", "a"])
    assert (kept.metrics, kept.labels) == (("matthews",), ("c", "b", "a"))


def test_resolve_refuses() -> None:
    with pytest.raises(DataError, match="all rows have the same label") as caught:
        KIND.resolve(TASK, ["a", "a"])
    assert caught.value.where == "t.csv"
    assert "'a' in 2 rows" in caught.value.got
    with pytest.raises(ConfigError, match="did you mean 'spam'"):
        KIND.resolve(TASK.resolved(positive="span"), ["spam", "ham"])


def test_numbers_and_back() -> None:
    task = KIND.resolve(TASK, ["b", "a", "b"])
    assert KIND.outputs(task) == 2
    encoded = KIND.encode(["b", "a"], task)
    assert (encoded.dtype, encoded.tolist()) == (np.int64, [1, 0])
    assert KIND.strata(["b", "a"]) == ["b", "a"]
    assert KIND.predictions(LOGITS, task).tolist() == [1, 0]
    first, second = KIND.decode(LOGITS, task)
    assert first["label"] == "b"
    assert first["probabilities"] == pytest.approx({"a": 0.25, "b": 0.75})
    assert second["probabilities"] == {"a": 1.0, "b": 0.0}, "great logits do not overflow"
    with pytest.raises(DataError, match="unknown label 'c'"):
        KIND.encode(["c"], task)


def test_loss_is_the_mean_cross_entropy() -> None:
    loss = KIND.loss(torch.tensor([[0.0, np.log(3)]] * 2), torch.tensor([1, 0]))
    assert float(loss) == pytest.approx(-(np.log(0.75) + np.log(0.25)) / 2)


def test_constant_is_the_majority() -> None:
    task = KIND.resolve(TASK.resolved(labels=("a", "b", "c")), ["b", "a", "b", "b"])
    constant = KIND.constant(KIND.encode(["b", "a", "b", "b"], task), task)
    assert np.exp(constant) == pytest.approx([0.25, 0.75, 1e-9])


def test_a_list_of_one_label_is_that_label() -> None:
    assert KIND.parse(("a",), TASK, "f.jsonl:1") == "a"
    with pytest.raises(DataError, match="a list of labels") as caught:
        KIND.parse((), TASK, "f.jsonl:1")
    assert caught.value.got == "an empty list"


def test_costs_choose_the_label() -> None:
    """Of two labels the answer turns where Elkan (2001) says: at the probability 1 / 11 of what is 10 times as dear."""
    costs = {"a": {"a": 0.0, "b": 10.0}, "b": {"a": 1.0, "b": 0.0}}
    task = KIND.resolve(TASK.resolved(costs=costs), ["a", "b"])
    chances = np.array([[0.0905, 0.9095], [0.0914, 0.9086]])  # 1 / 11 is 0.0909
    assert KIND.predictions(np.log(chances), task).tolist() == [1, 0]
    answers = KIND.decode(np.log(chances), task)
    assert [answer["label"] for answer in answers] == ["b", "a"]
    assert answers[1]["expected_cost"] == pytest.approx(0.9086)
    assert confidence_of(answers[1]) == pytest.approx(0.0914), "that of the label, not of the most probable one"
    assert KIND.sentence(answers[1]) == "a   (b 0.909, a 0.091)   expected cost 0.909"
    assert KIND.predictions(np.log(chances), KIND.resolve(TASK, ["a", "b"])).tolist() == [1, 1]


def test_the_constant_answer_is_the_cheapest() -> None:
    costs = {"a": {"a": 0.0, "b": 10.0}, "b": {"a": 1.0, "b": 0.0}}
    task = KIND.resolve(TASK.resolved(costs=costs), ["a", "b", "b", "b"])
    constant = KIND.constant(KIND.encode(["a", "b", "b", "b"], task), task)
    assert KIND.predictions(constant[None], task).tolist() == [0], "b is three times as frequent, a saves 10"
