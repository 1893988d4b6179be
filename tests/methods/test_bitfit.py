"""BitFit: one number per bias, and none for a map that has no bias."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from graftwork.backbones.tiny_text import ARCHITECTURE
from graftwork.core.method import Setting
from graftwork.methods.bitfit import BitFit
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
SETTING = Setting(DATA.task, kinds.get("classification"), BACKBONE)
D, INNER, L = ARCHITECTURE["hidden_size"], ARCHITECTURE["intermediate_size"], ARCHITECTURE["num_hidden_layers"]


def test_as_many_parameters_as_the_blocks_have_biases() -> None:
    model = build_model(BitFit(), SETTING, towers=1)
    own = sum(parameter.numel() for name, parameter in model.delta().items() if "head" not in name)
    maps = 4 * D + INNER + D  # query, key, value, output; up; down
    norms = 2 * D
    assert own == L * (maps + norms)
    biases = [p for n, p in BACKBONE.module.named_parameters() if n.startswith("encoder") and n.endswith("bias")]
    assert own == sum(bias.numel() for bias in biases)


def test_a_shift_is_a_change_of_the_bias() -> None:
    model = build_model(BitFit(), SETTING, towers=1)
    inputs = BACKBONE.collate(BACKBONE.encode(DATA.train.examples), [0, 1])
    own = BACKBONE.copy()
    with torch.no_grad():
        for name, adapter in model.adapters.items():
            adapter.b.normal_(std=0.1)
            bias = own.module.get_submodule(name.replace("/", ".")).bias
            assert isinstance(bias, nn.Parameter)
            bias.add_(adapter.b)
        found, expected = model.backbone.features(inputs).pooled, own.features(inputs).pooled
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found, BACKBONE.features(inputs).pooled, atol=0.01)


def test_a_backbone_without_biases_does_not_fit() -> None:
    assert "no biases" in BitFit().unfit(DATA.task, replace(BACKBONE.card, biased=False))
    assert BitFit().unfit(DATA.task, BACKBONE.card) == ""
