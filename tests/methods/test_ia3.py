"""IA3: PEFT's answers, the identity at the start, and what is plugged into the input of a map."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch

from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.errors import ConfigError
from graftwork.methods.ia3 import IA3
from graftwork.nn.gain import Gain
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_dataset
from graftwork.train.loop import build_model

DATA = tiny_dataset()
BACKBONE = open_backbone("tiny_text", precision="fp32")
INPUTS = BACKBONE.collate(BACKBONE.encode(DATA.train.examples), range(6))


def attached() -> Model:
    return build_model(IA3(), Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)


def pefts() -> Any:
    """The same network with PEFT's IA3 in it. Its warnings are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peft = pytest.importorskip("peft")
        maps = ["attention.self.key", "attention.self.value"]
        down = [f"{i}.output.dense" for i in range(BACKBONE.card.blocks)]
        config = peft.IA3Config(target_modules=maps + down, feedforward_modules=down)
        return peft.get_peft_model(copy.deepcopy(BACKBONE.module), config).eval()


def test_the_same_gains_give_pefts_answers() -> None:
    ours, theirs = attached(), pefts()
    sites = dict(theirs.base_model.model.named_modules())
    with torch.no_grad():
        for place, adapter in ours.adapters.items():
            adapter.g.normal_(std=0.5)
            gain = sites[place.partition(":")[0].replace("/", ".")].ia3_l["default"]
            gain.copy_(1 + adapter.g.view(gain.shape))
        expected = theirs(**INPUTS).last_hidden_state
        found, plain = ours.backbone.features(INPUTS).sequence, BACKBONE.features(INPUTS).sequence
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (found - plain).abs().max() > 0.1
    trained = {name: parameter for name, parameter in ours.delta().items() if "head" not in name}
    assert sum(p.numel() for n, p in theirs.named_parameters() if p.requires_grad) == sum(
        parameter.numel() for parameter in trained.values()
    )


def test_a_map_runs_once_and_starts_as_it_was() -> None:
    ours, runs = attached(), list[str]()
    for name, site in ours.backbone.sites("mlp.down").items():
        site.register_forward_hook(lambda *of, name=name: runs.append(name))
    with torch.no_grad():
        found, plain = ours.backbone.features(INPUTS).sequence, BACKBONE.features(INPUTS).sequence
    assert torch.equal(found, plain) and runs == list(ours.backbone.sites("mlp.down"))


def test_two_adapters_at_one_place_are_refused_and_at_both_ends_of_a_site_compose() -> None:
    ours = attached()
    with pytest.raises(ConfigError, match="two adapters at one place"):
        ours.plug("mlp.down", lambda site: Gain(site.in_features), at="input")  # type: ignore[arg-type]
    ours.plug("mlp.down", lambda site: Gain(site.out_features))  # type: ignore[arg-type]
    with torch.no_grad():
        plain = ours.backbone.features(INPUTS).sequence
        for adapter in ours.adapters.values():
            adapter.g.fill_(0.5)
        assert (ours.backbone.features(INPUTS).sequence - plain).abs().max() > 0.01
    places = {name for name in ours.delta() if "output/dense" in name and "attention" not in name}
    assert len(places) == 2 * BACKBONE.card.blocks
    ours.unplug()
    with torch.no_grad():
        assert torch.equal(ours.backbone.features(INPUTS).sequence, plain)
