"""Feed-forward columns removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.prune import Prune
from graftwork.ship.fewer_columns import importance, without_columns
from graftwork.ship.folding import folded

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.mark.parametrize(
    ("kind", "pair"), [("classification", False), pytest.param("regression", True, marks=pytest.mark.slow)]
)
def test_tensors_are_smaller_and_the_module_opens(tmp_path: Path, teacher: Teacher, kind: str, pair: bool) -> None:
    module, data = teacher(kind, pair=pair)
    done = Prune(columns=0.25, epochs=1, invented=0).apply(module, tmp_path / "pruned", data, seed=0)
    pruned = TaskModule.load(tmp_path / "pruned")
    assert (done.facts["columns"], done.facts["columns_kept"]) == (64, 16) and 0 < done.facts[
        "importance_removed"
    ] < 0.75
    assert pruned.backbone is not None and module.backbone is not None
    assert {tuple(site.weight.shape) for site in pruned.backbone.sites("mlp.up").values()} == {(16, 32)}
    assert pruned.backbone.card.parameters == module.backbone.card.parameters - 2 * 48 * (2 * 32 + 1)
    assert pruned.difference == 0


def test_importance_is_the_first_order_change_of_the_loss(teacher: Teacher) -> None:
    module, data = teacher()
    whole = folded(module)
    scores = importance(whole, module.task, data.train)
    up, down = (next(iter(whole.backbone.sites(role).values())) for role in ("mlp.up", "mlp.down"))
    assert [len(one) for one in scores] == [64, 64] and not any(
        one.requires_grad for one in whole.backbone.module.parameters()
    )
    with torch.no_grad():
        down.weight[:, 7] = 0  # its activation has no effect any more
    again = importance(whole, module.task, data.train)
    assert float(scores[0][7]) > 0 == float(again[0][7]) and up.weight.grad is None


def test_columns_without_effect_go_first_and_change_nothing(teacher: Teacher) -> None:
    module, data = teacher()
    whole = folded(module)
    with torch.no_grad():
        for down in whole.backbone.sites("mlp.down").values():
            down.weight[:, ::2] = 0
    encoded = whole.backbone.encode(data.train.examples)
    inputs = whole.backbone.collate(encoded, range(8))
    before = whole.backbone.features(inputs).pooled
    pruned = without_columns(whole.backbone, importance(whole, module.task, data.train), 32)
    assert np.allclose(pruned.features(inputs).pooled, before, atol=1e-5)
    assert pruned.card.revision != module.description["backbone"]["revision"]


def test_what_does_not_fit_is_told(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher(method="adapter")
    assert "no change of weights" in Prune().unfit(module)
    module, data = teacher()
    with pytest.raises(ConfigError, match=r"columns is a share above 0 and below 1, not 1"):
        Prune(columns=1.0).apply(module, tmp_path / "pruned", data, seed=0)
