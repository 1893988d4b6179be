"""Average: the mean of the weights of trainings that differ in the order of the rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graftwork.budget.forecast import Forecast
from graftwork.budget.forecaster import TRAINING, Forecaster
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting, Workbench
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.data.splits.batch_order import epoch_batches
from graftwork.io.files import safe_load
from graftwork.methods.average import Average
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.receipts.file_integrity import losses_of
from graftwork.registry import kinds
from graftwork.run.earlier_training import began_alike
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.testing.tiny_writers import write_seq2seq
from graftwork.train.seeds import derive

DATA, RECIPE = tiny_dataset(rows=24), Recipe(epochs=2)


def refused(method: Full, bench: Workbench) -> None:
    """A fit that fails."""
    raise AssertionError("it was there")


@pytest.mark.parametrize(("by", "method"), [("full", Full()), ("lora:rank=2", Lora(rank=2))])
def test_it_is_the_mean_of_trainings_in_other_orders(by: str, method: Full | Lora) -> None:
    tiny = open_backbone("tiny_text", precision="fp32")
    fitted = Average(runs=2, by=by).fit(tiny_bench(DATA, tiny))
    bench = tiny_bench(DATA, tiny)
    other = replace(bench, order=partial(epoch_batches, bench.recipe, derive(bench.seed + 1, "order")))
    one, two = (method.fit(some).delta() for some in (bench, other))
    assert any(not torch.equal(torch.as_tensor(one[name]), torch.as_tensor(two[name])) for name in one)
    for name, found in fitted.delta().items():
        mean = (torch.as_tensor(one[name]).double() + torch.as_tensor(two[name]).double()) / 2
        assert torch.allclose(torch.as_tensor(found).double(), mean, atol=1e-7)
    assert fitted.facts["averaged"] == 2
    delta = {name: torch.as_tensor(array) for name, array in fitted.delta().items()}
    restored = Average(runs=2, by=by).restore(Setting(DATA.task, kinds.get(DATA.task.kind), tiny), delta, fitted.facts)
    assert np.array_equal(restored.logits(DATA.test.examples), fitted.logits(DATA.test.examples))


def test_it_takes_the_runs_that_are_there(open_tiny: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result, losses, FLOPs and nearly the time of trainings of its own; only of methods that start
    alike."""
    session = open_tiny("classification", True)
    average = parse_method("average:runs=2:by=full")
    alone, _ = execute(session, average, RECIPE, 1, silent)
    tensors = safe_load(session.store.root / alone.id / "module" / "delta.safetensors", mapped=False)
    losses = losses_of(session.store.root / alone.id)
    shutil.rmtree(session.store.root / alone.id)
    runs = [execute(session, parse_method("full"), RECIPE, seed, silent)[0] for seed in (1, 2)]

    monkeypatch.setattr(Full, "fit", refused)
    found, reused = execute(session, average, RECIPE, 1, silent)
    again = safe_load(session.store.root / found.id / "module" / "delta.safetensors", mapped=False)
    assert found.status == "ok" and not reused and found.id == alone.id
    assert again.keys() == tensors.keys() and all(torch.equal(again[name], tensors[name]) for name in again)
    assert (found.scores, found.facts) == (alone.scores, alone.facts)
    assert losses and losses_of(session.store.root / found.id) == losses
    assert found.costs["train_flops"].value == pytest.approx(alone.costs["train_flops"].value)
    both = sum(run.costs["train_seconds"].value or 0.0 for run in runs)
    assert (found.costs["train_seconds"].value or 0.0) > both - runs[1].shared.wall_seconds
    assert execute(session, parse_method("average:runs=3:by=full"), RECIPE, 1, silent)[0].error == "it was there"


@pytest.mark.slow
def test_runs_that_write_texts_are_averaged_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no head, so those of `full` start from the backbone's weights alone."""
    rows = [f"the house has {n} doors,{n} doors" for n in range(30)]
    (tmp_path / "texts.csv").write_text("\n".join(["source,target", *rows]), encoding="utf-8")
    task = Task.from_file(tmp_path / "texts.csv", kind="generation", longest=6, metrics="exact_match")
    settings = RunSettings(f"hf:{write_seq2seq(tmp_path / 't5')}", runs=str(tmp_path / "runs"), precision="fp32")
    session, average = open_session(task, [parse_method("full")], settings), parse_method("average:runs=2")
    alone = execute(session, average, RECIPE, 0, silent)[0]
    tensors = safe_load(session.store.root / alone.id / "module" / "delta.safetensors", mapped=False)
    shutil.rmtree(session.store.root / alone.id)
    runs = [execute(session, parse_method("full"), RECIPE, seed, silent)[0] for seed in (0, 1)]
    assert all(began_alike(session, Full(), run) for run in runs)
    monkeypatch.setattr(Full, "fit", refused)
    found = execute(session, average, RECIPE, 0, silent)[0]
    again = safe_load(session.store.root / found.id / "module" / "delta.safetensors", mapped=False)
    assert found.status == "ok" and all(torch.equal(again[name], tensors[name]) for name in tensors)


def test_runs_on_pairs_read_together_are_averaged(
    open_tiny: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cross_encoder` reads them so; its runs start alike where those of the method below do."""
    session = open_tiny(pair=True)
    tiny: Any = session.backbone
    apart = replace(session, backbone=replace(tiny, card=replace(tiny.card, towers=2)))
    average, below = parse_method("average:runs=2:by=cross_encoder:by=full"), parse_method("cross_encoder:by=full")
    assert average.method.unfit(apart.dataset.task, apart.backbone.card) == ""
    runs = [execute(apart, below, RECIPE, seed, silent)[0] for seed in (0, 1)]
    assert all(began_alike(apart, below.method, run) for run in runs)
    assert not began_alike(apart, parse_method("cross_encoder:by=lora").method, runs[0])
    forecaster = Forecaster(apart, RECIPE, 0)
    assert forecaster.operations(average) == 2 * forecaster.operations(below)
    monkeypatch.setattr(Full, "fit", refused)
    found = execute(apart, average, RECIPE, 0, silent)[0]
    assert found.status == "ok" and found.facts["averaged"] == 2
    one, two, mean = (
        safe_load(apart.store.root / run.id / "module" / "delta.safetensors", mapped=False) for run in (*runs, found)
    )
    for name, tensor in mean.items():
        assert torch.allclose(tensor.double(), (one[name].double() + two[name].double()) / 2, atol=1e-7)
    module = TaskModule.load(apart.store.root / found.id / "module", backbone=apart.backbone)
    texts = [example.inputs for example in apart.dataset.test.examples]
    assert len(module.predict([[inputs["text_a"], inputs["text_b"]] for inputs in texts])) == len(texts)


def test_what_it_does_not_fit() -> None:
    card = open_backbone("tiny_text", precision="fp32").card
    assert Average().unfit(DATA.task, card) == ""
    assert "2 or more" in Average(runs=1).unfit(DATA.task, card)
    assert "each of its runs is the same" in Average(by="linear_probe").unfit(DATA.task, card)
    assert "over another" in Average(by="no_transfer").unfit(DATA.task, card)


def test_a_forecast_counts_every_training(open_tiny: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    forecaster = Forecaster(open_tiny("classification", False), Recipe(epochs=1), 0)
    average, full = parse_method("average:runs=4"), parse_method("full")
    assert forecaster.operations(average) > 2 * forecaster.operations(full)
    assert set(TRAINING) <= forecaster.forecast(full).parts.keys()
    once = Forecast({"building": 1.0, "prefix": 2.0, "head start": 3.0, "steps": 5.0, "validation": 7.0, "saving": 9.0})
    monkeypatch.setattr(Forecaster, "_from_steps", lambda forecaster, method: once)
    assert forecaster.forecast(average).seconds == 4 * (1 + 5 + 7) + 2 + 3 + 9
