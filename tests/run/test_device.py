"""Everything on a CUDA card: on a pretended one, and on a real one where there is one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.budget.ladder import climb
from graftwork.core.backbone import device_of
from graftwork.core.method import Logits
from graftwork.core.model import Model
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.io.files import read_json
from graftwork.module.predict_many import predict_many
from graftwork.module.task_module import TaskModule
from graftwork.run.train import Run, train
from pretended_cuda import pretended_cuda

Write = Callable[..., Path]
Trained = Callable[..., Run]

NEAR = {"fp32": 1e-3, "bf16": 0.1}  # of a logit, as a share of the largest: two epochs let roundings grow
WITH_CUDA = (pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"))


@pytest.fixture(params=["pretended", pytest.param("real", marks=WITH_CUDA)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A device that is not the processor."""
    with contextlib.nullcontext() if request.param == "real" else pretended_cuda(monkeypatch):
        yield "cuda"


@pytest.fixture
def trained(write: Write, tmp_path: Path) -> Trained:
    """A run on the toy data."""

    def make(
        method: str, device: str, precision: str = "fp32", kind: str = "classification", pair: bool = False
    ) -> Run:
        data = write(kind, pair)
        return train(data, method=method, backbone="tiny_text", epochs=2, precision=precision, device=device,
                     runs=tmp_path / "runs")  # fmt: skip

    return make


def logits_of(run: Run) -> Logits:
    return np.array(
        [json.loads(line)["logits"] for line in (run.folder / "predictions.jsonl").read_text().splitlines()]
    )


def close(found: Any, expected: Any, precision: str = "fp32") -> bool:
    """Near: attention has a kernel of its own there, and in bf16 the processor has a product of its own."""
    return float(np.abs(found - expected).max()) <= NEAR[precision] * float(np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "precision", "pair"),
    [
        ("full", "fp32", False),
        ("full", "bf16", False),
        ("top_layers:k=1", "fp32", True),
        ("adapter", "bf16", False),
        ("ulmfit", "fp32", False),
        ("linear_probe", "fp32", True),
    ],
)
def test_a_run_gives_what_it_gives_on_the_processor(
    method: str, precision: str, pair: bool, device: str, trained: Trained
) -> None:
    here, there = (trained(method, name, precision, pair=pair) for name in ("cpu", device))
    numerics = [read_json(run.folder / "spec.json")["numerics"]["device"] for run in (here, there)]
    assert numerics == ["cpu", device] and here.result.id != there.result.id
    assert close(logits_of(there), logits_of(here), precision)
    assert there.result.facts["head_start" if method != "linear_probe" else "block"] is not None
    for name in ("train_flops", "padding_flops", "trained_parameters", "stored_bytes"):
        assert there.result.costs[name].value == pytest.approx(here.result.costs[name].value, rel=0.01), name


def test_a_module_opens_wherever_it_was_made(device: str, trained: Trained) -> None:
    texts = ["good film", "a bad and cold one", "it was so warm"]
    answers = []
    for made_on in ("cpu", device):
        folder = trained("top_layers:k=1", made_on).folder
        for opened_on in ("cpu", device):
            module = TaskModule.load(folder, device=opened_on)
            assert module.backbone is not None and device_of(module.backbone.module).type == opened_on
            answers.append(module.fitted.logits(module.examples(texts)))
            assert {tensor.device.type for tensor in module.fitted.delta().values()} == {"cpu"}
    assert all(close(found, answers[0]) for found in answers)


def test_modules_on_two_devices_answer_together(device: str, trained: Trained) -> None:
    folder = trained("lora", "cpu").folder
    modules = [TaskModule.load(folder, device=name) for name in ("cpu", device)]
    assert modules[0].backbone is not modules[1].backbone
    here, there = ([answer["probabilities"]["good"] for answer in one] for one in predict_many(modules, ["a", "good"]))
    assert close(np.array(there), np.array(here))


@pytest.mark.slow
def test_what_is_kept_for_one_device_is_not_read_on_another(device: str, trained: Trained) -> None:
    cache = CacheFolder(cache_folder())
    trained("linear_probe", "cpu")  # it reads train alone
    assert len(cache.entries()) == 1
    trained("linear_probe", device)
    assert len(cache.entries()) == 2
    trained("top_layers:k=1", device)
    assert len(cache.entries()) == 4


def test_what_trains_lies_where_the_backbone_does(device: str, trained: Trained) -> None:
    model = TaskModule.load(trained("adapter", "cpu").folder, device=device).fitted.model  # type: ignore[attr-defined]
    assert isinstance(model, Model) and model.device.type == device
    assert {parameter.device.type for parameter in model.parameters()} == {device}
    assert len(model.delta()) > 2


@pytest.mark.slow
def test_a_budget_is_spent_there_too(device: str, write: Write, tmp_path: Path) -> None:
    places = {"out": tmp_path / "ladder", "runs": tmp_path / "runs"}
    rungs = ["linear_probe", "top_layers:k=1", "full"]
    found = climb(write(), "2min", backbone="tiny_text", rungs=rungs, epochs=1, device=device, **places)
    assert {rung["decision"] for rung in found.content["rungs"]} <= {
        "kept",
        "best so far",
        "not better",
        "not worth it",
    }
    first = [rung for rung in found.content["rungs"] if rung["seed"] == 0 and rung["config"]["name"] != "average"]
    assert all(rung["operations"] > 0 for rung in first)
    assert found.content["rungs"][0]["predicted_seconds"] > 0
    assert read_json(found.run.folder / "spec.json")["numerics"]["device"] == device


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_cuda_the_receipt_names_the_gpu_and_its_memory(trained: Trained) -> None:
    run = trained("full", "auto", "auto")
    assert read_json(run.folder / "spec.json")["numerics"]["device"] == "cuda"
    assert run.result.environment["accelerator"] == torch.cuda.get_device_name()
    assert 0 < (run.result.costs["peak_accelerator_bytes"].value or 0) < 1e9
