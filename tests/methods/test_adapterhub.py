"""AdapterHub's bottlenecks: both orders of norm and bottleneck, their places, and what they are left out of."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import layer_norm

from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.methods.adapterhub import AdapterHub, BesideMap, BesideNorm
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.targets.classifier_head import ClassifierHead
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
D, L = BACKBONE.card.width, BACKBONE.card.blocks


def attached(method: AdapterHub) -> Model:
    return build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)


def test_the_formula_of_the_normed_order() -> None:
    norm = nn.LayerNorm(3, eps=1e-5)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    adapter = BesideNorm(norm, size=2, activation="relu")
    s, inner = torch.randn(1, 4, 3), adapter.bottleneck
    assert torch.equal(adapter(s, norm(s)), norm(s))
    nn.init.normal_(inner.up.weight)
    nn.init.normal_(inner.up.bias)
    change = torch.relu(norm(s) @ inner.down.weight.T + inner.down.bias) @ inner.up.weight.T + inner.up.bias
    expected = layer_norm(s + change, (3,), norm.weight, norm.bias, 1e-5)
    torch.testing.assert_close(adapter(s, norm(s)), expected)
    assert [name for name, _ in adapter.named_parameters() if "bottleneck" not in name] == []


def test_the_formula_of_the_plain_order() -> None:
    adapter = BesideMap(nn.Linear(5, 3), size=2, activation="silu")
    y, inner = torch.randn(1, 4, 3), adapter.bottleneck
    nn.init.normal_(inner.up.weight)
    hidden = y @ inner.down.weight.T + inner.down.bias
    expected = y + (hidden * torch.sigmoid(hidden)) @ inner.up.weight.T + inner.up.bias
    torch.testing.assert_close(adapter(torch.randn(1, 4, 5), y), expected)


def test_they_stand_behind_the_parts_that_are_named() -> None:
    both = [f"encoder/layer/{i}/{part}" for i in range(L) for part in ("attention/output", "output")]
    for reads, end in (("norm", "LayerNorm"), ("map", "dense")):
        found = set(attached(AdapterHub("attention+mlp", reads)).adapters)
        assert found == {f"{path}/{end}" for path in both}
    assert list(attached(AdapterHub("mlp")).adapters) == [f"encoder/layer/{i}/output/LayerNorm" for i in range(L)]


def test_parameters() -> None:
    model = attached(AdapterHub("mlp", size=3))
    bottlenecks = sum(parameter.numel() for name, parameter in model.delta().items() if "adapters" in name)
    assert bottlenecks == L * (2 * 3 * D + 3 + D)
    assert isinstance(model.head, ClassifierHead)
    assert sum(parameter.numel() for parameter in model.head.parameters()) == D * D + D + 2 * D + 2


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (AdapterHub(), "parts must be attention, mlp"),
        (AdapterHub("mlp+head"), "parts must be attention, mlp"),
        (AdapterHub("mlp+mlp"), "parts must be attention, mlp or attention+mlp"),
        (AdapterHub("mlp", "sum"), "reads norm or map"),
        (AdapterHub("mlp", activation="mish"), "activation and head must be one of"),
        (AdapterHub("mlp", head="mish"), "activation and head must be one of"),
        (AdapterHub("mlp", size=0), "size must be above 0"),
    ],
    ids=str,
)
def test_what_does_not_fit(method: AdapterHub, reason: str) -> None:
    assert reason in method.unfit(DATA.task, BACKBONE.card) and reason in method.unfit(DATA.task, None)


def test_it_answers_classification_only() -> None:
    assert AdapterHub("mlp").unfit(DATA.task, BACKBONE.card) == ""
    assert "not tagging" in AdapterHub("mlp").unfit(tiny_dataset("tagging").task, BACKBONE.card)


def test_a_first_token_that_sees_no_other_is_not_read() -> None:
    blind, deaf = replace(BACKBONE.card, pooling="last"), replace(BACKBONE.card, modality="sound")
    assert "has not seen the others" in AdapterHub("mlp").unfit(DATA.task, blind)
    assert "reads sounds" in AdapterHub("mlp").unfit(DATA.task, deaf)
    assert AdapterHub("mlp").unfit(DATA.task, replace(BACKBONE.card, pooling="mean")) == ""
