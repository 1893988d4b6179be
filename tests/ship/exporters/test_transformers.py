"""Modules that transformers opens as classifiers, with the same logits; the others are refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters
from graftwork.ship.classifier_folder import reflection

Make = Callable[..., TaskModule]
Compare = Callable[[str, TaskModule], float]
QUERIES = "peft_lora:maps=attention.query+mlp.up"


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("bert", "tanh"),
        ("roberta", "tanh"),
        pytest.param("electra", "gelu", marks=pytest.mark.slow),
        pytest.param("distilbert", "relu", marks=pytest.mark.slow),
    ],
)
def test_a_head_of_theirs_is_written_under_its_names(
    family: str, head: str, trained: Make, difference: Compare, tmp_path: Path
) -> None:
    assert difference("transformers", trained(f"{QUERIES}:head={head}", family)) < 1e-5
    config = json.loads((tmp_path / "exported" / "config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "yes", "2": "perhaps"}
    assert config["problem_type"] == "single_label_classification"
    assert config["architectures"][0].endswith("ForSequenceClassification")


@pytest.mark.parametrize(
    ("method", "kind", "pair"),
    [("full", "classification", False), ("bitfit", "multilabel", True), ("lora", "regression", False)],
)
def test_modernbert_scales_by_its_own_norm(
    method: str, kind: str, pair: bool, trained: Make, difference: Compare
) -> None:
    assert difference("transformers", trained(method, "modernbert", kind, pair)) < 1e-4


def test_the_reflection_turns_one_plane_into_the_other() -> None:
    draw = torch.Generator().manual_seed(0)
    for gain in (
        torch.rand(8, generator=draw, dtype=torch.float64) + 0.5,
        torch.ones(8),
        torch.tensor([0.0] + [1.0] * 7),
    ):
        turn = reflection(gain.double())
        states = torch.randn(5, 8, generator=draw, dtype=torch.float64)
        states = (states - states.mean(dim=1, keepdim=True)) * gain.double()
        turned = states @ turn.T
        assert turned.mean(dim=1).abs().max() < 1e-12
        assert torch.allclose(turned.norm(dim=1), states.norm(dim=1))
        assert torch.allclose(turn @ turn, torch.eye(8, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(
    ("method", "family", "kind", "reason"),
    [
        ("lora", "bert", "classification", "does not scale; sentence_transformers and onnx take it"),
        ("adapter", "modernbert", "classification", "can't be added to the weights of the network: Bottleneck"),
        (f"{QUERIES}:head=relu", "bert", "classification", "train it with head=tanh"),
    ],
)
def test_others_are_refused_with_a_way_on(method: str, family: str, kind: str, reason: str, trained: Make) -> None:
    assert reason in exporters.get("transformers").unfit(trained(method, family, kind))
