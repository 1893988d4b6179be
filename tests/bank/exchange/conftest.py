"""What the tests of the exchange share: tiny random networks as transformers folders, and task modules over them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graftwork.core.backbone import towers_of
from graftwork.core.configured_methods import parse_method
from graftwork.core.example import Example
from graftwork.core.method import THRESHOLDS_FACT, Setting
from graftwork.core.task import Task
from graftwork.module.task_module import TaskModule, save_module
from graftwork.module.thresholds import with_thresholds
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.train.loop import FittedModel, build_model

sys.path.insert(0, str(Path(__file__).parent))  # `networks.py` is importable whatever the import mode
import networks
from networks import TEXTS

WriteNetwork = Callable[..., Path]
MakeModule = Callable[..., TaskModule]


@pytest.fixture(scope="session")
def write_network(tmp_path_factory: pytest.TempPathFactory) -> WriteNetwork:
    """A transformers folder with random weights, biases too, and a tokenizer of whole words; one per architecture."""
    written: dict[str, Path] = {}

    def write(model_type: str, *, sentences: bool = False, **changes: Any) -> Path:
        key = f"{model_type} {sentences} {changes}"
        if key not in written:
            folder = tmp_path_factory.mktemp("networks") / model_type
            written[key] = networks.write_network(folder, model_type, sentences=sentences, **changes)
        return written[key]

    return write


@pytest.fixture(scope="session")
def write_module() -> MakeModule:
    """Writes a task module with a random delta over the network in a folder, and opens it."""

    def write(
        folder: Path,
        method: str,
        network: Path,
        *,
        kind: str = "classification",
        pair: bool = False,
        precision: str = "fp32",
        shift: list[float] | None = None,
    ) -> TaskModule:
        backbone = open_backbone(f"hf:{network}", precision=precision)
        labels = () if kind == "regression" else ("no", "yes", "perhaps")
        task = Task(
            "mood", Path(), kind=kind, labels=labels, settings={"scale": (3.0, 2.0)} if kind == "regression" else {}
        )
        setting = Setting(task, kinds.get(kind), backbone)
        examples = [Example(f"x/{i}", inputs) for i, inputs in enumerate(inputs_of(kind, pair))]
        towers, made = towers_of(backbone.card.towers, examples[0]), parse_method(method)
        torch.manual_seed(3)
        model = build_model(made.method, setting, towers)  # type: ignore[arg-type]
        for name, parameter in model.delta().items():
            nn.init.normal_(parameter, std=0.3 if name.startswith("adapters") else 0.1)
        fitted = with_thresholds(FittedModel(model, {"towers": towers, "start_block": 0}), shift)
        assert (THRESHOLDS_FACT in fitted.facts) == (shift is not None)
        receipt = {
            "run": "0" * 8, "method": made.config, "recipe": {}, "precision": precision, "backbone_seed": 0,
            "scores": {}, "trained_parameters": 1,
        }  # fmt: skip
        save_module(folder, setting, fitted, receipt, examples, fitted.logits(examples))
        return TaskModule.load(folder)

    return write


@pytest.fixture
def make_module(write_module: MakeModule, tmp_path: Path) -> MakeModule:
    """The same, in the test's own folder."""
    return partial(write_module, tmp_path / "module")


def inputs_of(kind: str, pair: bool) -> list[dict[str, Any]]:
    if kind == "tagging":
        return [{"words": ("the", "film")}]
    if not pair:
        return [{"text": text} for text in TEXTS]
    return [{"text_a": a, "text_b": b} for a, b in zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)]


@pytest.fixture
def logits() -> Callable[[TaskModule], Tensor]:
    """Those of a module for `TEXTS`, or for each of them with the next one."""

    def answer(module: TaskModule) -> Tensor:
        pair = len(module.roles) == 2
        examples = [Example(f"x/{i}", inputs) for i, inputs in enumerate(inputs_of("classification", pair))]
        found: Any = module.fitted.logits(examples)
        return torch.from_numpy(found).float()

    return answer


@pytest.fixture
def rounds_alike() -> Callable[[Tensor, Tensor, Tensor], None]:
    """What large networks are held to in fp32: how far it rounds differs with the processor.

    Ours may be as far from the other library's own answers in fp64 as three times its fp32, and at least 1e-5.
    """

    def check(ours: Tensor, theirs: Tensor, exact: Tensor) -> None:
        rounding = float((theirs - exact).abs().max())
        torch.testing.assert_close(ours.double(), exact.double(), atol=max(1e-5, 3 * rounding), rtol=0)

    return check


@pytest.fixture
def texts() -> list[str]:
    """What `logits` answers: short, long and empty ones, so that a batch has padding."""
    return TEXTS
