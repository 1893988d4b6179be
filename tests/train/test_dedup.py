"""Equal sequences of a batch are read once, and each gets what was read."""

from __future__ import annotations

import pytest
import torch

from graftwork.core.backbone import Inputs
from graftwork.core.example import Example
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.train.answer import frozen_states, states_up_to
from graftwork.train.dedup import equals_of


def batch(ids: list[list[int]], types: list[list[int]] | None = None) -> Inputs:
    told = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids).ne(0).long()}
    return told if types is None else told | {"token_type_ids": torch.tensor(types)}


def test_the_first_of_equals_is_read() -> None:
    found = equals_of(batch([[5, 6], [7, 0], [5, 6], [7, 0], [8, 9]]))
    assert found is not None and found.firsts == [0, 1, 4] and found.places == [0, 1, 0, 1, 2]
    assert equals_of(batch([[5, 6], [6, 5], [5, 0]])) is None
    assert equals_of(batch([[5, 6], [5, 6]], [[0, 0], [0, 1]])) is None  # other segments, other texts


def test_words_images_and_sounds_are_left_alone() -> None:
    twice = batch([[5, 6], [5, 6]])
    assert equals_of(twice) is not None
    assert equals_of(twice | {"words": torch.ones(2, 2, dtype=torch.bool)}) is None
    assert equals_of({"attention_mask": torch.ones(2, 1), "pixel_values": torch.zeros(2, 3)}) is None


@pytest.mark.parametrize("towers", [1, 2])
def test_states_are_those_of_each_by_itself(towers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = open_backbone("tiny_text", precision="fp32")
    texts = ["a good film", "a long and rather dull one", "a good film", "nothing"]
    encoded = backbone.encode([Example(str(row), {"text": text}) for row, text in enumerate(texts)])
    inputs = backbone.collate(encoded, range(4))
    whole = states_up_to(backbone, inputs, 2, towers)
    read = []
    real = TransformerBackbone.states_up_to

    def counting(self: TransformerBackbone, some: Inputs, depth: int) -> tuple[torch.Tensor, ...]:
        read.append(len(some["input_ids"]))
        return real(self, some, depth)

    monkeypatch.setattr(TransformerBackbone, "states_up_to", counting)
    mask = inputs["attention_mask"].bool()
    for once, each in zip(frozen_states(backbone, inputs, 2, towers), whole, strict=True):
        torch.testing.assert_close(once[mask], each[mask], atol=1e-5, rtol=0)
    assert sum(read) == 3
