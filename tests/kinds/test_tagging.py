"""Tagging: parsing, what the data decides, numbers and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.registry import kinds
from graftwork.targets.words import example_of
from graftwork.testing import check_kind

KIND = kinds.get("tagging")
TASK = Task("t", Path("t.conll"), kind="tagging")
SPANS = KIND.resolve(TASK, [("B-PER", "I-PER", "O", "B-LOC", "I-LOC")])
PLAIN = KIND.resolve(TASK, [("NOUN", "VERB")])


def sure(*tags: str) -> Ragged:
    """Logits of one example that are sure of these tags of `SPANS`."""
    return Ragged(9.0 * np.eye(len(SPANS.labels))[[SPANS.labels.index(tag) for tag in tags]], np.array([len(tags)]))


def test_the_contract_for_tags_that_mark_no_spans() -> None:
    check_kind("tagging", [("NOUN", "VERB"), ("DET", "NOUN", "VERB")])


def test_tags_are_the_text_of_the_file() -> None:
    assert KIND.parse(("NA", " a "), TASK, "f:1") == ("NA", " a ")
    with pytest.raises(DataError, match="unknown label 'NUON'") as caught:
        KIND.parse(("NOUN", "NUON"), PLAIN, "f:7")
    assert caught.value.where == "f:7" and "did you mean 'NOUN'?" in caught.value.do


def test_resolve() -> None:
    assert SPANS.labels == ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
    assert SPANS.metrics == ("entity_f1", "conll_f1", "accuracy")
    assert (PLAIN.labels, PLAIN.metrics) == (("NOUN", "VERB"), ("accuracy",))
    listed = KIND.resolve(TASK.resolved(labels=("O", "B-X"), metrics=("accuracy",)), [("O", "B-X")])
    assert (listed.labels, listed.metrics) == (("O", "B-X"), ("accuracy",))


def test_the_rarest_tag_is_the_stratum() -> None:
    assert KIND.strata([("a", "b"), ("a",), ("a", "c"), ("a", "c", "b")]) == ["b", "a", "c", "b"]


def test_numbers_and_back() -> None:
    encoded = KIND.encode([("B-PER", "O"), ("I-LOC",)], SPANS)
    assert encoded.tolist() == [[1, 4], [2]] and encoded.flat.dtype == np.int64
    assert KIND.predictions(sure("B-PER", "O", "I-LOC"), SPANS).tolist() == [[1, 4, 2]]
    assert np.exp(KIND.constant(encoded, SPANS)) == pytest.approx([1e-9, 1 / 3, 1 / 3, 1e-9, 1 / 3])


def test_spans_of_a_text_and_of_words() -> None:
    text = "Mr. Ray  Brown, of Paris"
    cut = example_of("x", text)
    assert cut.inputs["words"] == ("Mr", ".", "Ray", "Brown", ",", "of", "Paris")
    logits = sure("O", "O", "B-PER", "I-PER", "O", "O", "I-LOC")
    (answer,) = KIND.decode(logits, SPANS, [cut])
    found = [(span["label"], span["text"], text[span["start"] : span["end"]]) for span in answer["spans"]]
    assert found == [("PER", "Ray  Brown", "Ray  Brown"), ("LOC", "Paris", "Paris")]
    one = np.exp(9) / (np.exp(9) + 4)
    assert [span["probability"] for span in answer["spans"]] == pytest.approx([one**2, one])
    (given,) = KIND.decode(logits, SPANS, [Example("y", {"words": cut.inputs["words"]})])
    joined = "Mr . Ray Brown , of Paris"
    assert [joined[span["start"] : span["end"]] for span in given["spans"]] == ["Ray Brown", "Paris"]


def test_tags_of_words() -> None:
    logits = Ragged(np.array([[0.0, np.log(3)], [1000.0, 0.0], [0.0, 0.0]]), np.array([2, 1]))
    one, two = KIND.decode(logits, PLAIN, [example_of("x", "they run"), example_of("y", "away")])
    assert one["tags"] == ["VERB", "NOUN"] and one["words"] == ["they", "run"]
    assert one["probabilities"] == pytest.approx([0.75, 1.0]) and two["tags"] == ["NOUN"]
    assert next(iter(one)) == "tags", "the first entry is the prediction"


def test_loss_is_the_mean_over_words_and_none_of_no_words() -> None:
    loss = KIND.loss(torch.tensor([[0.0, np.log(3)]] * 2), torch.tensor([1, 0]))
    assert float(loss) == pytest.approx(-(np.log(0.75) + np.log(0.25)) / 2)
    nothing = torch.zeros(0, 2, requires_grad=True)
    value = KIND.loss(nothing, torch.zeros(0, dtype=torch.int64))
    value.backward()  # type: ignore[no-untyped-call]
    assert float(value.detach()) == 0
