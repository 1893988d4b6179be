"""LoRA as PEFT trains it: on the maps that are named, under transformers' head, and in no comparison unasked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graftwork.compare.leaderboard import choose_methods
from graftwork.core.method import Setting
from graftwork.methods.peft_lora import PeftLora
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.targets.classifier_head import ClassifierHead
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
D, L = BACKBONE.card.width, BACKBONE.card.blocks


def test_it_stands_at_the_maps_that_are_named() -> None:
    method = PeftLora("attention.key+mlp.up", rank=2, head="none")
    model = build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)
    ends = ("attention/self/key", "intermediate/dense")
    assert set(model.adapters) == {f"encoder/layer/{i}/{end}" for i in range(L) for end in ends}
    assert isinstance(model.head, ClassifierHead) and model.head.hidden is None


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (PeftLora(), "maps must be of attention.query"),
        (PeftLora("attention.query+norm"), "maps must be of attention.query"),
        (PeftLora("mlp.up+mlp.up"), "each once"),
        (PeftLora("mlp.up", rank=0), "rank must be above 0"),
        (PeftLora("mlp.up", head="mish"), "head must be one of"),
    ],
    ids=str,
)
def test_what_does_not_fit(method: PeftLora, reason: str) -> None:
    assert reason in method.unfit(DATA.task, BACKBONE.card) and reason in method.unfit(DATA.task, None)


def test_it_answers_classification_only() -> None:
    assert PeftLora("mlp.up").unfit(DATA.task, BACKBONE.card) == ""
    assert "not span" in PeftLora("mlp.up").unfit(tiny_dataset("span").task, BACKBONE.card)


def test_it_reads_a_pair_as_one_sequence() -> None:
    pairs, apart = tiny_dataset(pair=True).task, replace(BACKBONE.card, towers=2)
    assert PeftLora("mlp.up").unfit(pairs, BACKBONE.card) == "" == PeftLora("mlp.up").unfit(DATA.task, apart)
    assert "one sequence" in PeftLora("mlp.up").unfit(pairs, apart)


def test_a_comparison_leaves_out_what_is_only_imported() -> None:
    unasked = [item.label for item in choose_methods(None) if item.method.unfit(DATA.task, None)]
    assert {"peft_lora", "adapterhub"} <= set(unasked)


def test_a_first_token_that_sees_no_other_is_not_read() -> None:
    blind, deaf = replace(BACKBONE.card, pooling="last"), replace(BACKBONE.card, modality="sound")
    assert "has not seen the others" in PeftLora("mlp.up").unfit(DATA.task, blind)
    assert "reads sounds" in PeftLora("mlp.up").unfit(DATA.task, deaf)
    assert PeftLora("mlp.up").unfit(DATA.task, replace(BACKBONE.card, pooling="mean")) == ""
