"""Examples with choices: each choice is a pair with the text, read as pairs are."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone

ASKED = Example("test/1", {"text": "the film was good", "choices": ("i liked it", "it was bad", "a film")})
OTHER = Example("test/2", {"text": "a bad film", "choices": ("i left", "i stayed")})


@pytest.mark.parametrize("towers", [1, 2])
def test_a_choice_is_read_as_its_pair(towers: int) -> None:
    opened = open_backbone("tiny_text", precision="fp32")
    assert isinstance(opened, TransformerBackbone)
    backbone: Backbone = replace(opened, card=replace(opened.card, towers=towers))
    encoded = backbone.encode([ASKED, OTHER])
    assert encoded.towers == towers and encoded.sequences_of.tolist() == [3 * towers, 2 * towers]
    pairs = [
        Example(str(place), {"text_a": asked.inputs["text"], "text_b": choice})
        for asked in (ASKED, OTHER)
        for place, choice in enumerate(asked.inputs["choices"])
    ]
    alone = backbone.encode(pairs)
    assert encoded.ids == alone.ids and encoded.types == alone.types
    with torch.no_grad():
        read = backbone.features(backbone.collate(encoded, encoded.sequences([1]))).pooled
        same = backbone.features(backbone.collate(alone, alone.sequences([3, 4]))).pooled
    assert torch.equal(read, same) and len(read) == 2 * towers
