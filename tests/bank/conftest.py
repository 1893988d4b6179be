"""What the tests of banks share: tiny task modules, made once, and a bank of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting
from graftwork.module.task_module import save_module
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.testing import tiny_bench, tiny_dataset

MakeModule = Callable[..., Path]


def make_module(
    folder: Path, method: str, kind: str, pair: bool, precision: str, backbone: str, seed: int, name: str
) -> Path:
    """A task module as a run leaves it, without a run."""
    data, made = tiny_dataset(kind, pair=pair), parse_method(method)
    writes = kind == "generation"
    opened = open_backbone(backbone, precision=precision, writes=writes) if made.method.uses_backbone else None
    fitted = made.method.fit(tiny_bench(data, opened, epochs=1, seed=seed))
    told = {
        "run": f"run{seed}",
        "method": made.config,
        "recipe": {},
        "precision": precision,
        "backbone_seed": 0,
        "scores": {data.task.metrics[0]: 0.5 + seed / 10},
        "trained_parameters": fitted.trained_parameters,
    }
    kept = data.test.examples[:2]
    setting = Setting(data.task.resolved(name=name), kinds.get(data.task.kind), opened)
    save_module(folder, setting, fitted, told, kept, fitted.logits(kept))
    return folder


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> MakeModule:
    """`module("lora", seed=1)`: a module folder, which nobody changes."""
    made: dict[tuple[object, ...], Path] = {}

    def find(
        method: str = "linear_probe",
        kind: str = "classification",
        *,
        pair: bool = False,
        precision: str = "fp32",
        backbone: str = "tiny_text",
        seed: int = 0,
        name: str = "tiny",
    ) -> Path:
        key = (method, kind, pair, precision, backbone, seed, name)
        if key not in made:
            made[key] = make_module(tmp_path_factory.mktemp("module") / "module", *key)
        return made[key]

    return find
