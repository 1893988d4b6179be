"""Scalar mix: what it trains is what it counts, and what is stored answers the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graftwork.core.method import Setting
from graftwork.methods import scalar_mix
from graftwork.methods.scalar_mix import MixHead, ScalarMix
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.linear_fit import LinearFit
from graftwork.train.loop import Diverged

BACKBONE = open_backbone("tiny_text", precision="fp32")


def test_stored_and_restored_it_answers_and_counts_alike() -> None:
    data = tiny_dataset()
    fitted = ScalarMix(epochs=1).fit(tiny_bench(data, BACKBONE))
    setting = Setting(data.task, kinds.get("classification"), BACKBONE)
    restored = ScalarMix(epochs=1).restore(setting, fitted.delta(), fitted.facts)
    assert np.array_equal(restored.logits(data.test.examples), fitted.logits(data.test.examples))
    start = LinearFit(fitted.weight, fitted.bias, 1.0, 0)
    learnt = sum(one.numel() for one in MixHead(torch.ones_like(fitted.shares), start).parameters())
    wide, outputs = BACKBONE.card.width, 2
    assert fitted.trained_parameters == restored.trained_parameters == learnt
    assert learnt == (wide + 1) * outputs + BACKBONE.card.blocks + 2


def test_without_any_score_on_validation_the_run_diverged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalar_mix, "scorer", lambda bench, encoded: lambda logits: float("nan"))
    with pytest.raises(Diverged, match="training diverged"):
        ScalarMix(epochs=2).fit(tiny_bench(tiny_dataset(), BACKBONE))
