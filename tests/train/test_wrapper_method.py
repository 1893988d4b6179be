"""What a recipe is told of a method that is over another, or begins otherwise than most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.train.wrapper_method import beginning

CARD = open_backbone("tiny_text", precision="fp32").card
FRESH_CARD = replace(CARD, id=f"random:{CARD.id}")


@pytest.mark.parametrize(
    ("words", "head_start", "pretrained"),
    [
        ("full", True, True),
        ("partial_input:by=adapter", True, True),
        ("peft_lora:maps=mlp.up", False, True),
        ("adapterhub:parts=mlp", False, True),
        ("no_transfer:by=full", True, False),
        ("no_transfer:by=peft_lora:maps=mlp.up", False, False),
    ],
)
def test_where_training_begins(words: str, head_start: bool, pretrained: bool) -> None:
    method = parse_method(words).method
    assert beginning(method, CARD) == {"head_start": head_start, "pretrained": pretrained}
    assert beginning(method, FRESH_CARD) == {"head_start": head_start, "pretrained": False}
    assert beginning(method, None)["pretrained"] == pretrained
