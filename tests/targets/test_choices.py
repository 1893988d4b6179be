"""Choices: marks, the loss over those of one example, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.nn.listwise_loss import listwise_loss
from graftwork.targets.choices import encode_marks, pairs_of, parse_marks
from graftwork.targets.listwise import Listwise

TASK = Task("t", Path(), kind="choice")


def test_marks_carry_the_number_of_their_example() -> None:
    encoded = encode_marks([(0, 1), (1, 0, 0)])
    assert encoded.tolist() == [[[0, 0], [1, 0]], [[1, 1], [0, 1], [0, 1]]]
    assert encoded[np.array([1])].flat.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert encode_marks([]).flat.shape == (0, 2)


def test_the_loss_of_one_right_choice_is_cross_entropy() -> None:
    logits = torch.randn(7, 1, dtype=torch.float64, requires_grad=True)
    targets = torch.from_numpy(encode_marks([(0, 1), (0, 0, 1), (1, 0)]).flat)
    parts = [(logits[:2, 0], 1), (logits[2:5, 0], 2), (logits[5:, 0], 0)]
    expected = sum(cross_entropy(part[None], torch.tensor([right])) for part, right in parts) / 3
    assert torch.allclose(listwise_loss(logits, targets), torch.as_tensor(expected))
    part = torch.tensor([5, 6, 2, 3, 4])  # a batch of some examples, in any order
    expected = sum(cross_entropy(part[None], torch.tensor([right])) for part, right in parts[1:]) / 2
    assert torch.allclose(listwise_loss(logits[part], targets[part]), torch.as_tensor(expected))


def test_the_loss_of_several_and_of_no_right_candidates() -> None:
    logits = torch.tensor([[1.0], [2.0], [0.0], [4.0], [4.0]], requires_grad=True)
    targets = torch.from_numpy(encode_marks([(1, 0, 1), (0, 0)]).flat)
    shares = logits[:3, 0].log_softmax(0)
    assert float(listwise_loss(logits, targets).detach()) == pytest.approx(float(-(shares[0] + shares[2]).detach() / 2))
    listwise_loss(logits, targets).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None and not logits.grad[3:].any()
    nothing = listwise_loss(logits[3:], targets[3:])
    assert float(nothing.detach()) == 0 and nothing.requires_grad


def test_places() -> None:
    assert np.exp(Listwise().constant(encode_marks([(0, 1), (0, 1, 0), (1, 0)]), TASK))[:, 0] == pytest.approx(
        [1 / 3, 2 / 3, 1e-9]
    )


def test_pairs() -> None:
    pairs = pairs_of(
        [Example("a/1", {"text": "t", "choices": ("x", "y")}), Example("a/2", {"text": "u", "choices": ("z",)})]
    )
    assert [(pair.id, *pair.inputs.values()) for pair in pairs] == [
        ("a/1/1", "t", "x"),
        ("a/1/2", "t", "y"),
        ("a/2/1", "u", "z"),
    ]


@pytest.mark.parametrize(
    ("choices", "marks", "what"),
    [
        (("a",), (1,), "a single choice"),
        ((), (), "without choices"),
        (("a", " "), (1, 0), "choice 2 of 2 is empty"),
        (("a", "b"), (1, 0, 0), "2 choices, 3 marks"),
        (("a", "b", "a"), (1, 0, 0), "the same choice is right and wrong"),
    ],
)
def test_what_does_not_belong_together(choices: tuple[str, ...], marks: tuple[int, ...], what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        Listwise().settle(marks, {"text": "t", "choices": choices}, TASK, "f.csv:3")
    assert caught.value.where == "f.csv:3"


def test_marks_are_0_or_1() -> None:
    assert parse_marks(("0", "1"), "f:1") == (0, 1)
    with pytest.raises(DataError, match="grades are not known"):
        parse_marks(("0", "2"), "f:1")
    with pytest.raises(DataError, match="'maybe'"):
        parse_marks("maybe", "f:1")
