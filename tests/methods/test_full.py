"""Full fine-tuning: everything trains, and the token embeddings only where they are asked to."""

from __future__ import annotations

import torch

from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting
from graftwork.core.model import Model
from graftwork.methods.full import EMBEDDINGS, Full
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.loop import build_model, fit_by_gradient

BACKBONE = open_backbone("tiny_text", precision="fp32")
DATA = tiny_dataset()
TABLE = "network.embeddings.word_embeddings.weight"


def attached(method: Full) -> Model:
    return build_model(method, Setting(DATA.task, kinds.get("classification"), BACKBONE), towers=1)


def test_everything_trains() -> None:
    model = attached(Full())
    assert model.delta().keys() == dict(model.named_parameters()).keys()
    assert model.tables() == [TABLE]


def test_frozen_embeddings_are_all_that_does_not_train() -> None:
    model = attached(Full(embeddings="frozen"))
    assert dict(model.named_parameters()).keys() - model.delta().keys() == {TABLE}
    assert model.tables() == [] and model.start == 0


def test_frozen_embeddings_stay_and_are_not_stored() -> None:
    touched, frozen = (fit_by_gradient(Full(embeddings=word), tiny_bench(DATA, BACKBONE)) for word in EMBEDDINGS)
    before = BACKBONE.module.get_parameter(TABLE.removeprefix("network."))
    assert torch.equal(frozen.model.get_parameter(TABLE), before)
    assert not torch.equal(touched.model.get_parameter(TABLE), before)
    assert touched.delta().keys() - frozen.delta().keys() == {TABLE}
    assert touched.trained_parameters - frozen.trained_parameters == before.numel()
    positions = "network.embeddings.position_embeddings.weight"
    assert not torch.equal(frozen.model.get_parameter(positions), attached(Full()).get_parameter(positions))


def test_the_setting_is_written_as_it_is_called() -> None:
    assert parse_method("full:embeddings=frozen").label == "full:embeddings=frozen"
    assert parse_method("full:embeddings=touched").label == "full"
    assert "one of touched, frozen, not 'dense'" in Full(embeddings="dense").unfit(DATA.task, None)
    for decay in (0.0, -1.0, 1.5):
        assert "decay must be above 0 and at most 1" in Full(decay=decay).unfit(DATA.task, None)
    assert Full(decay=1.0).unfit(DATA.task, None) == ""
