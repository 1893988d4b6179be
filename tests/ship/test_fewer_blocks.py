"""Shallower copies of a network."""

from __future__ import annotations

import pytest
import torch

from graftwork.core.example import Example
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.write_folder import as_transformer
from graftwork.ship.fewer_blocks import spread, with_blocks


@pytest.mark.parametrize(
    ("blocks", "kept", "numbers"), [(6, 3, [0, 2, 4]), (12, 4, [0, 3, 6, 9]), (6, 1, [0]), (5, 2, [0, 2])]
)
def test_blocks_are_kept_at_even_distances(blocks: int, kept: int, numbers: list[int]) -> None:
    assert spread(blocks, kept) == numbers


def test_the_first_block_alone_gives_the_states_behind_it() -> None:
    whole = as_transformer(open_backbone("tiny_text", precision="fp32"))
    encoded = whole.encode([Example("1", {"text": "a fine film"}), Example("2", {"text": "cold"})])
    inputs = whole.collate(encoded, [0, 1])
    shallow = with_blocks(whole.copy(), [0])
    states = shallow.states(inputs)
    assert len(states) == 2 and torch.equal(states[1], whole.states(inputs)[1])
    assert (shallow.card.blocks, shallow.module.config.num_hidden_layers) == (1, 1)  # type: ignore[union-attr]
    assert whole.card.blocks == 2 == len(whole.sites("block")) and shallow.card.revision != whole.card.revision
    assert shallow.card.parameters < whole.card.parameters
