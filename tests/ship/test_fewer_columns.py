"""Feed-forward columns: what they matter, and networks without some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from graftwork.backbones.hf_text import LAYOUTS
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.write_folder import as_transformer
from graftwork.ship.compression import CompressionData
from graftwork.ship.fewer_columns import importance, unprunable, without_columns
from graftwork.ship.folding import folded_network

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


def test_importance_is_the_first_order_change_of_the_loss(teacher: Teacher) -> None:
    module, data = teacher()
    whole = folded_network(module)
    scores = importance(whole, module.task, data.train)
    up, down = (next(iter(whole.backbone.sites(role).values())) for role in ("mlp.up", "mlp.down"))
    assert [len(one) for one in scores] == [64, 64] and not any(
        one.requires_grad for one in whole.backbone.module.parameters()
    )
    with torch.no_grad():
        down.weight[:, 7] = 0  # its activation has no effect any more
    again = importance(whole, module.task, data.train)
    assert float(scores[0][7]) > 0 == float(again[0][7]) and up.weight.grad is None


def test_columns_without_effect_go_first_and_change_nothing(teacher: Teacher) -> None:
    module, data = teacher()
    whole = folded_network(module)
    with torch.no_grad():
        for down in whole.backbone.sites("mlp.down").values():
            down.weight[:, ::2] = 0
    encoded = whole.backbone.encode(data.train.examples)
    inputs = whole.backbone.collate(encoded, range(8))
    before = whole.backbone.features(inputs).pooled
    pruned = without_columns(whole.backbone, importance(whole, module.task, data.train), 32)
    assert np.allclose(pruned.features(inputs).pooled, before, atol=1e-5)
    assert pruned.card.revision != module.description["backbone"]["revision"]


def test_a_block_used_again_and_a_gate_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    backbone = as_transformer(open_backbone("tiny_text", precision="fp32").copy())
    assert unprunable(backbone) == "" and "bert" in LAYOUTS
    assert "one block, used again" in unprunable(replace(backbone, card=replace(backbone.card, shared_blocks=True)))
    block = next(iter(backbone.sites("block").values()))
    block.add_module("gate", torch.nn.Linear(32, 64))
    assert "have a gate" in unprunable(backbone)
