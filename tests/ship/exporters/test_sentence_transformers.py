"""Modules that SentenceTransformer opens, whose embedding is the logits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters
from graftwork.ship.export import export
from graftwork.train.probe import Probe

Make = Callable[..., TaskModule]
pytestmark = pytest.mark.slow  # the library takes seconds to import


@pytest.mark.parametrize(
    ("method", "family", "kind", "pair"),
    [
        ("lora", "bert", "classification", False),
        ("bitfit", "bert", "classification", True),
        ("ia3", "roberta", "multilabel", False),
        ("full", "distilbert", "regression", False),
        ("top_layers", "t5", "classification", False),
    ],
)
def test_the_embedding_is_the_logits(
    method: str, family: str, kind: str, pair: bool, trained: Make, difference: Callable[[str, TaskModule], float]
) -> None:
    assert difference("sentence_transformers", trained(method, family, kind, pair)) < 1e-4


def test_the_features_below_the_head_have_length_one(trained: Make, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tmp_path / "exported"
    folder.mkdir()
    exporters.get("sentence_transformers").write(trained("lora", "bert"), folder)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    features = SentenceTransformer(modules=list(model)[:3], device="cpu").encode(["the film was good"])
    assert features.shape == (1, 16)
    assert np.linalg.norm(features) == pytest.approx(1.0, abs=1e-5)


def test_what_is_no_network_of_one_text_is_refused(trained: Make) -> None:
    refused = exporters.get("sentence_transformers").unfit
    assert "Bottleneck; onnx takes it" in refused(trained("adapter", "bert"))


def test_the_format_may_be_spelled_as_the_library_is(trained: Make, tmp_path: Path) -> None:
    assert export(trained("lora", "bert"), tmp_path / "exported", to="sentence-transformers")["to"] in exporters.names()


def test_a_probe_on_a_lower_block_is_a_shorter_network(
    trained: Make, difference: Callable[[str, TaskModule], float], tmp_path: Path
) -> None:
    probe = probed(trained("lora", "roberta"), [0.0, 0.0, 1.0, 0.0])
    assert difference("sentence_transformers", probe) < 1e-4
    assert json.loads((tmp_path / "exported" / "config.json").read_text())["num_hidden_layers"] == 2


def test_a_probe_on_a_mix_is_refused(trained: Make) -> None:
    refused = exporters.get("sentence_transformers").unfit
    assert "reads a mix of blocks" in refused(probed(trained("lora", "bert"), [0.0, 0.5, 0.5, 0.0]))
    assert "reads block 2 of 3" in refused(probed(trained("lora", "modernbert"), [0.0, 0.0, 1.0, 0.0]))


def probed(module: TaskModule, shares: list[float]) -> TaskModule:
    """The module with a random linear layer on the states of blocks in place of what was fitted."""
    assert module.backbone is not None
    draw = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(3, module.backbone.card.width, generator=draw), torch.randn(3, generator=draw)
    probe = Probe(module.backbone, torch.tensor(shares), weight, bias, {"block": "2"})
    return replace(module, fitted=probe, description=dict(module.description) | {"method": {"name": "linear_probe"}})
