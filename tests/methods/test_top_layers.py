"""Top layers: which blocks train, and where it cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graftwork.core.method import Setting
from graftwork.methods.full import Full
from graftwork.methods.top_layers import TopLayers
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
SETTING = Setting(DATA.task, kinds.get("classification"), BACKBONE)


def test_only_the_top_trains() -> None:
    model = build_model(TopLayers(k=1), SETTING, towers=1)
    block = sum(p.numel() for p in list(BACKBONE.sites("block").values())[1].parameters())
    head = BACKBONE.card.width * 2 + 2
    assert sum(p.numel() for p in model.delta().values()) == block + head
    assert model.start == 1


def test_full_trains_everything() -> None:
    model = build_model(Full(), SETTING, towers=1)
    assert sum(p.numel() for p in model.delta().values()) == BACKBONE.card.parameters + BACKBONE.card.width * 2 + 2


@pytest.mark.parametrize("k", [0, 2, 3, -1])
def test_as_many_blocks_as_there_are_do_not_fit(k: int) -> None:
    assert TopLayers(k=k).unfit(DATA.task, BACKBONE.card) == f"k must be between 1 and 1 for tiny_text, not {k}"


def test_shared_blocks_do_not_fit() -> None:
    albert = replace(BACKBONE.card, shared_blocks=True, blocks=12)
    assert "share their weights" in TopLayers(k=2).unfit(DATA.task, albert)
    assert TopLayers(k=1).unfit(DATA.task, BACKBONE.card) == ""
