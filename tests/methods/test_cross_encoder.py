"""Cross-encoder: the method below, on the same weights, with pairs that are one sequence each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.core.backbone import Backbone
from graftwork.core.configured_methods import of_a, parse_method
from graftwork.core.method import Setting
from graftwork.methods.cross_encoder import CrossEncoder
from graftwork.methods.linear_probe import LinearProbe
from graftwork.methods.lora import Lora
from graftwork.methods.no_transfer import NoTransfer
from graftwork.methods.partial_input import PartialInput
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.ship.folding import elsewhere, unfoldable
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.method_contract import digest_of
from graftwork.train.memo import MemoEntry
from graftwork.train.wrapper_method import is_control

PAIRS = tiny_dataset(pair=True, rows=24)


def reading(towers: int) -> Backbone:
    """The tiny network, which reads pairs together or each text by itself."""
    tiny: Any = open_backbone("tiny_text", precision="fp32")
    made: Backbone = replace(tiny, card=replace(tiny.card, towers=towers))
    return made


def test_it_is_the_method_on_joint_pairs() -> None:
    apart = reading(2)
    before = digest_of(apart.module)
    fitted = CrossEncoder(by="lora:rank=2").fit(tiny_bench(PAIRS, apart))
    expected = Lora(rank=2).fit(tiny_bench(PAIRS, reading(1)))
    assert fitted.delta().keys() == expected.delta().keys()
    assert all(
        torch.equal(torch.as_tensor(one), torch.as_tensor(expected.delta()[name]))
        for name, one in fitted.delta().items()
    )
    answers = expected.logits(PAIRS.test.examples)
    assert np.array_equal(fitted.logits(PAIRS.test.examples), answers)
    assert not np.array_equal(Lora(rank=2).fit(tiny_bench(PAIRS, apart)).logits(PAIRS.test.examples), answers)
    assert digest_of(apart.module) == before and apart.card.towers == 2
    setting = Setting(PAIRS.task, kinds.get(PAIRS.task.kind), apart)
    delta = {name: torch.as_tensor(one) for name, one in fitted.delta().items()}
    restored = CrossEncoder(by="lora:rank=2").restore(setting, delta, fitted.facts)
    assert np.array_equal(restored.logits(PAIRS.test.examples), answers)


def test_seeds_share_its_pass_and_nothing_with_other_methods() -> None:
    apart, done = reading(2), MemoEntry()
    fitted = []
    for seed in (0, 1):
        bench = tiny_bench(PAIRS, apart, seed=seed)
        bench.shared = done
        fitted.append((CrossEncoder(by="linear_probe").fit(bench), bench))
    (first, spent), (second, charged) = fitted
    alone = tiny_bench(PAIRS, reading(1))
    assert np.array_equal(first.logits(PAIRS.test.examples), LinearProbe().fit(alone).logits(PAIRS.test.examples))
    assert np.array_equal(second.logits(PAIRS.test.examples), first.logits(PAIRS.test.examples))
    assert charged.tally.padding_flops == spent.tally.padding_flops > 0


def test_where_it_is_tried() -> None:
    for room in ("BOARD", "LADDER"):
        assert [item.label for item in of_a(room) if item.config["name"] == "cross_encoder"] == [
            "cross_encoder:by=full"
        ]
    assert parse_method("cross_encoder:by=lora:rank=4").label == "cross_encoder:by=lora:rank=4"


@pytest.mark.parametrize("kind", ["choice", "ranking"])
def test_choices_are_pairs(kind: str) -> None:
    assert CrossEncoder().unfit(tiny_dataset(kind).task, reading(2).card) == ""


def test_what_it_does_not_fit() -> None:
    card = reading(2).card
    assert CrossEncoder().unfit(PAIRS.task, card) == ""
    assert "no pairs" in CrossEncoder().unfit(tiny_dataset().task, card)
    assert "together anyway" in CrossEncoder().unfit(PAIRS.task, reading(1).card)
    assert "no attention" in CrossEncoder().unfit(PAIRS.task, replace(card, lacks=("attention",)))
    assert "uses no backbone" in CrossEncoder(by="tfidf_svm").unfit(PAIRS.task, card)
    assert "over another" in CrossEncoder(by="no_transfer").unfit(PAIRS.task, card)


def test_no_exporter_is_recommended_for_it() -> None:
    fitted = CrossEncoder(by="lora:rank=2").fit(tiny_bench(PAIRS, reading(2)))
    module: Any = SimpleNamespace(backbone=reading(2), fitted=fitted, description={"method": {"name": "cross_encoder"}})
    assert "does not predict with a linear layer" in unfoldable(module) and elsewhere(module) == ""
    module.fitted = fitted.fitted
    assert elsewhere(module) == "; onnx takes it"


def test_it_may_be_chosen_where_controls_may_not() -> None:
    assert not is_control(CrossEncoder())
    assert is_control(NoTransfer()) and is_control(PartialInput())
