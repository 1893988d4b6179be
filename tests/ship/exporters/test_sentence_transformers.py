"""Modules that SentenceTransformer opens, whose embedding is the logits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters

Make = Callable[..., TaskModule]
pytestmark = pytest.mark.slow  # the library takes seconds to import


@pytest.mark.parametrize(
    ("method", "family", "kind"),
    [
        ("lora", "bert", "classification"),
        ("ia3", "roberta", "multilabel"),
        ("full", "distilbert", "regression"),
        ("top_layers", "t5", "classification"),
    ],
)
def test_the_embedding_is_the_logits(
    method: str, family: str, kind: str, trained: Make, difference: Callable[[str, TaskModule], float]
) -> None:
    assert difference("sentence_transformers", trained(method, family, kind)) < 1e-4


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
