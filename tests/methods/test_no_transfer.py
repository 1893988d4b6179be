"""No transfer: the method below on other weights for every seed, drawn again from the module."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graftwork.core.configured_methods import of_a, parse_method
from graftwork.core.method import Setting
from graftwork.errors import ConfigError
from graftwork.methods.linear_probe import LinearProbe
from graftwork.methods.lora import Lora
from graftwork.methods.no_transfer import DRAWN, NoTransfer
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.method_contract import digest_of

DATA = tiny_dataset()


def test_it_is_the_method_on_a_random_backbone() -> None:
    backbone = open_backbone("tiny_text", precision="fp32")
    before = digest_of(backbone.module)
    fitted = NoTransfer(by="lora:rank=2").fit(tiny_bench(DATA, backbone))
    drawn = open_backbone("random:tiny_text", precision="fp32", seed=fitted.facts[DRAWN])
    expected = Lora(rank=2).fit(tiny_bench(DATA, drawn))
    assert fitted.delta().keys() == expected.delta().keys()
    assert all(torch.equal(tensor, expected.delta()[name]) for name, tensor in fitted.delta().items())
    assert np.array_equal(fitted.logits(DATA.test.examples), expected.logits(DATA.test.examples))
    assert digest_of(backbone.module) == before
    setting = Setting(DATA.task, kinds.get("classification"), backbone)
    restored = NoTransfer(by="lora:rank=2").restore(setting, fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(DATA.test.examples), expected.logits(DATA.test.examples))


@pytest.mark.slow
def test_every_seed_draws_other_weights_in_the_precision_of_the_backbone() -> None:
    backbone = open_backbone("tiny_text", precision="bf16")
    fitted = [NoTransfer(by="linear_probe").fit(tiny_bench(DATA, backbone, seed=seed)) for seed in (0, 1)]
    assert fitted[0].facts[DRAWN] != fitted[1].facts[DRAWN]
    drawn = open_backbone("random:tiny_text", precision="bf16", seed=fitted[0].facts[DRAWN])
    expected = LinearProbe().fit(tiny_bench(DATA, drawn)).logits(DATA.test.examples)
    assert np.array_equal(fitted[0].logits(DATA.test.examples), expected)
    assert not np.array_equal(fitted[1].logits(DATA.test.examples), expected)


def test_it_stands_on_a_board_only_where_asked_for() -> None:
    assert "no_transfer" not in {item.config["name"] for item in of_a("BOARD")}
    assert parse_method("no_transfer").label == "no_transfer:by=full"


def test_what_it_does_not_fit() -> None:
    assert "uses no backbone" in NoTransfer(by="tfidf_svm").unfit(DATA.task, None)
    random = open_backbone("random:tiny_text", precision="fp32")
    assert "random already" in NoTransfer().unfit(DATA.task, random.card)
    with pytest.raises(ConfigError, match="rank must be a whole number"):
        NoTransfer(by="lora:rank=x").unfit(DATA.task, None)
