"""Task modules over tiny random networks, for the tests of exporters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from bank.exchange import networks
from graftwork.core.backbone import towers_of
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import Setting
from graftwork.core.task import Task
from graftwork.module.task_module import TaskModule, save_module
from graftwork.module.thresholds import with_thresholds
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import exporters, kinds
from graftwork.train.loop import FittedModel, build_model

LONG = " ".join(["the film was good and bad"] * 60)  # longer than any of these networks reads
LABELS = ("no", "yes", "perhaps")


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A transformers folder with random weights; one for each architecture."""
    written: dict[str, Path] = {}

    def write(model_type: str) -> Path:
        if model_type not in written:
            folder = tmp_path_factory.mktemp("networks") / model_type
            written[model_type] = networks.write_network(folder, model_type, sentences=False)
        return written[model_type]

    return write


@pytest.fixture
def trained(network: Callable[[str], Path], tmp_path: Path) -> Callable[..., TaskModule]:
    """A module with a random delta."""

    def make(method: str, model_type: str, kind: str = "classification", pair: bool = False) -> TaskModule:
        backbone = open_backbone(f"hf:{network(model_type)}", precision="fp32")
        regression = kind == "regression"
        settings = {"scale": (3.0, 2.0)} if regression else {}
        task = Task("mood", Path(), kind=kind, labels=() if regression else LABELS, settings=settings)
        setting, examples = Setting(task, kinds.get(kind), backbone), examples_of(pair)
        towers, made = towers_of(backbone.card.towers, examples[0]), parse_method(method)
        torch.manual_seed(3)
        model = build_model(made.method, setting, towers)  # type: ignore[arg-type]
        for name, parameter in model.delta().items():
            nn.init.normal_(parameter, std=0.3 if name.startswith("adapters") else 0.1)
        shift = [0.5, -1.0, 2.0] if kind == "multilabel" else None
        fitted = with_thresholds(FittedModel(model, {"towers": towers, "start_block": 0}), shift)
        about = {
            "run": "0" * 8, "method": made.config, "recipe": {}, "precision": "fp32", "backbone_seed": 0,
            "scores": {}, "trained_parameters": 1,
        }  # fmt: skip
        save_module(tmp_path / "module", setting, fitted, about, examples, fitted.logits(examples))
        return TaskModule.load(tmp_path / "module", device="cpu")

    return make


def examples_of(pair: bool) -> list[Example]:
    texts = [*networks.TEXTS, LONG]
    if not pair:
        return [Example(f"x/{number}", {"text": text}) for number, text in enumerate(texts)]
    return [
        Example(f"x/{number}", {"text_a": one, "text_b": other})
        for number, (one, other) in enumerate(zip(texts, [*texts[1:], texts[0]], strict=True))
    ]


@pytest.fixture
def difference(tmp_path: Path) -> Callable[[str, TaskModule], float]:
    """The largest difference of a logit after an export: texts longer than the network reads are among them."""

    def compared(name: str, module: TaskModule) -> float:
        exporter, folder = exporters.get(name), tmp_path / "exported"
        assert exporter.unfit(module) == ""
        folder.mkdir()
        exporter.write(module, folder)
        examples = examples_of("text_b" in module.roles)
        found, expected = exporter.logits(folder, module, examples), module.fitted.logits(examples)
        assert np.ptp(np.asarray(expected), axis=0).min() > 1e-3  # they depend on the texts
        return float(np.abs(np.asarray(found) - np.asarray(expected)).max())

    return compared
