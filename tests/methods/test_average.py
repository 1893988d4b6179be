"""Average: the mean of the weights of trainings that differ in the order of the rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from graftwork.budget.forecast import TRAINING, Forecast, Forecaster
from graftwork.core.configured_methods import parse_method
from graftwork.core.method import Setting, Workbench
from graftwork.core.progress import silent
from graftwork.core.run import Recipe
from graftwork.data.splits.batch_order import epoch_batches
from graftwork.io.files import safe_load
from graftwork.methods.average import Average
from graftwork.methods.full import Full
from graftwork.methods.lora import Lora
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.registry import kinds
from graftwork.run.execute import execute
from graftwork.run.session import Session
from graftwork.testing import tiny_bench, tiny_dataset
from graftwork.train.seeds import derive

DATA = tiny_dataset(rows=24)


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
    """With the same result, FLOPs and nearly the time of trainings of its own; only of methods that start alike."""
    session, recipe = open_tiny("classification", True), Recipe(epochs=2)
    average = parse_method("average:runs=2:by=full")
    alone, _ = execute(session, average, recipe, 1, silent)
    tensors = safe_load(session.store.root / alone.id / "module" / "delta.safetensors", mapped=False)
    shutil.rmtree(session.store.root / alone.id)
    runs = [execute(session, parse_method("full"), recipe, seed, silent)[0] for seed in (1, 2)]

    def refused(method: Full, bench: Workbench) -> None:
        raise AssertionError("it was there")

    monkeypatch.setattr(Full, "fit", refused)
    found, reused = execute(session, average, recipe, 1, silent)
    again = safe_load(session.store.root / found.id / "module" / "delta.safetensors", mapped=False)
    assert found.status == "ok" and not reused and found.id == alone.id
    assert again.keys() == tensors.keys() and all(torch.equal(again[name], tensors[name]) for name in again)
    assert (found.scores, found.facts) == (alone.scores, alone.facts)
    assert found.costs["train_flops"].value == pytest.approx(alone.costs["train_flops"].value)
    both = sum(run.costs["train_seconds"].value or 0.0 for run in runs)
    assert (found.costs["train_seconds"].value or 0.0) > both - runs[1].shared.wall_seconds
    assert execute(session, parse_method("average:runs=3:by=full"), recipe, 1, silent)[0].error == "it was there"


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
