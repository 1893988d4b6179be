"""Compressions that change how a network is stored: tokens, half, int8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.half import Half
from graftwork.ship.compressions.int8 import Int8
from graftwork.ship.compressions.vocabulary import FewerTokens
from graftwork.ship.rung_measure import stored_with_backbone

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.mark.parametrize("method", ["full", "adapter:size=4", pytest.param("linear_probe", marks=pytest.mark.slow)])
def test_texts_that_were_seen_are_answered_alike(tmp_path: Path, teacher: Teacher, method: str) -> None:
    module, data = teacher(method=method)
    further = Example("1", {"text": "zqzq xjxj"})
    facts = FewerTokens().apply(module, tmp_path / "new", replace(data, unlabelled=(further,)), seed=0)
    made = TaskModule.load(tmp_path / "new")
    assert facts["tokens_kept"] < facts["tokens"] / 2 and facts["unknown_after"] == 0
    seen = [*data.train.examples, further]
    assert np.abs(made.fitted.logits(seen) - module.fitted.logits(seen)).max() < 1e-4
    assert made.backbone is not None and made.backbone.encode([further]).ids != module.backbone.encode([further]).ids  # type: ignore[union-attr]


def test_tokens_of_low_ids_may_be_kept(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher()
    facts = FewerTokens(common=10_000).apply(module, tmp_path / "new", data, seed=0)
    assert facts["tokens_kept"] == facts["tokens"]
    assert "0 or more" in FewerTokens(common=-1).unfit(module)


@pytest.mark.parametrize(("make", "smaller", "apart"), [(Half, 0.8, 0.05), (Int8, 0.65, 1.0)])
def test_fewer_bits(tmp_path: Path, teacher: Teacher, make: Any, smaller: float, apart: float) -> None:
    module, data = teacher()
    facts = make().apply(module, tmp_path / "new", data, seed=0)
    made = TaskModule.load(tmp_path / "new")
    assert stored_with_backbone(made) < smaller * stored_with_backbone(module)
    texts = data.validation.examples
    difference = np.abs(made.fitted.logits(texts) - module.fitted.logits(texts)).max()
    assert 0 < difference < apart
    assert make is Half or facts["cosine_of_logits"] > 0.99
    assert "already" in make().unfit(made) and "already" in Half().unfit(made)


def test_an_unknown_dtype_is_refused(teacher: Teacher) -> None:
    assert "fp16, bf16" in Half("fp8").unfit(teacher()[0])
