"""LoRA: the same map as PEFT's, and as many parameters as the formula says."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch

from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.methods.lora import Lora
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
INPUTS = BACKBONE.collate(BACKBONE.encode(DATA.train.examples), range(6))


def attached(method: Lora) -> Model:
    torch.manual_seed(0)
    return build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)


def pefts(rank: int, alpha: float) -> Any:
    """The same network with PEFT's LoRA in it. Its warnings are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
        config = peft.LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules=["query", "value"])
        return peft.get_peft_model(copy.deepcopy(BACKBONE.module), config).eval()


@pytest.mark.parametrize(("rank", "alpha"), [(8, 16.0), (2, 2.0), (4, 1.0)])
def test_the_same_a_and_b_give_pefts_answers(rank: int, alpha: float) -> None:
    ours = attached(Lora(rank=rank, alpha=alpha))
    theirs = pefts(rank, alpha)
    sites = dict(theirs.base_model.model.named_modules())
    with torch.no_grad():
        for name, adapter in ours.adapters.items():
            adapter.b.normal_(std=0.3)
            site = sites[name.replace("/", ".")]
            site.lora_A["default"].weight.copy_(adapter.a)
            site.lora_B["default"].weight.copy_(adapter.b)
        expected = theirs(**INPUTS).last_hidden_state
        found, plain = ours.backbone.features(INPUTS).sequence, BACKBONE.features(INPUTS).sequence
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - plain).abs().max() > 0.1
    assert sum(p.numel() for n, p in theirs.named_parameters() if p.requires_grad) == count(ours)


def count(model: Model) -> int:
    return sum(parameter.numel() for name, parameter in model.delta().items() if "head" not in name)


def test_parameters_are_two_thin_matrices_per_map() -> None:
    width, blocks = BACKBONE.card.width, BACKBONE.card.blocks
    assert count(attached(Lora(rank=3))) == blocks * 2 * (3 * width + width * 3)


def test_the_start_is_the_identity_and_is_drawn_from_the_seed() -> None:
    one, two = attached(Lora()), attached(Lora())
    torch.manual_seed(1)
    three = build_model(Lora(), Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)
    first, second, other = (model.adapters["encoder/layer/0/attention/self/query"] for model in (one, two, three))
    assert torch.equal(first.a, second.a) and not torch.equal(first.a, other.a)
    assert first.b.abs().max() == 0 and first.a.abs().max() > 0.01


def test_a_fused_map_is_adapted_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    real = TransformerBackbone.sites
    roles = {"attention.query": "no such role", "attention.qkv": "attention.output"}
    monkeypatch.setattr(TransformerBackbone, "sites", lambda self, role: real(self, roles.get(role, role)))
    assert list(attached(Lora()).adapters) == [f"encoder/layer/{i}/attention/output/dense" for i in range(2)]


@pytest.mark.parametrize("rank", [0, -1])
def test_a_rank_that_is_none_does_not_fit(rank: int) -> None:
    assert "rank must be above 0" in Lora(rank=rank).unfit(DATA.task, BACKBONE.card)
    assert Lora().unfit(DATA.task, BACKBONE.card) == ""
