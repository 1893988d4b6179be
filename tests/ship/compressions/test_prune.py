"""Feed-forward columns removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import CompressionData
from graftwork.ship.compressions.prune import Prune

Teacher = Callable[..., tuple[TaskModule, CompressionData]]


@pytest.mark.parametrize(
    ("kind", "pair"), [("classification", False), pytest.param("regression", True, marks=pytest.mark.slow)]
)
def test_tensors_are_smaller_and_the_module_opens(tmp_path: Path, teacher: Teacher, kind: str, pair: bool) -> None:
    module, data = teacher(kind, pair=pair)
    facts = Prune(columns=0.25, epochs=1, invented=0).apply(module, tmp_path / "pruned", data, seed=0)
    pruned = TaskModule.load(tmp_path / "pruned")
    assert (facts["columns"], facts["columns_kept"]) == (64, 16) and 0 < facts["importance_removed"] < 0.75
    assert pruned.backbone is not None and module.backbone is not None
    assert {tuple(site.weight.shape) for site in pruned.backbone.sites("mlp.up").values()} == {(16, 32)}
    assert pruned.backbone.card.parameters == module.backbone.card.parameters - 2 * 48 * (2 * 32 + 1)
    assert pruned.difference == 0


def test_what_does_not_fit_is_told(tmp_path: Path, teacher: Teacher) -> None:
    module, data = teacher(method="adapter")
    assert "can't be added to the weights" in Prune().unfit(module)
    module, data = teacher()
    with pytest.raises(ConfigError, match=r"columns is a share above 0 and below 1, not 1"):
        Prune(columns=1.0).apply(module, tmp_path / "pruned", data, seed=0)
