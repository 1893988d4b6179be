"""Forecasts: their parts, what they know of cached work, and how near they come to real runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.budget.forecast import Forecast
from graftwork.budget.forecaster import Forecaster
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.run.execute import execute
from graftwork.run.session import Session, open_session
from graftwork.run.settings import RunSettings

OpenSession = Callable[..., Session]
SEVERAL = (
    "majority", "tfidf_svm", "linear_probe", "top_layers:k=1", "adapter", "full", "no_transfer:by=top_layers:k=1",
)  # fmt: skip


def test_a_part_of_the_steps_where_the_seconds_do_not_hold_all() -> None:
    """A fifth at least; validation comes once more often than the epochs that are begun."""
    whole = Forecast({"prefix": 10.0, "steps": 60.0, "validation": 7.0}, epochs=6)
    assert whole.within(77.0) is whole and whole.within(23.9) is whole
    assert whole.within(76.9).part == 0.95 and whole.within(25.0).part == 0.2
    assert whole.within(25.0).parts == {"prefix": 10.0, "steps": pytest.approx(12.0), "validation": pytest.approx(3.0)}
    assert Forecast({"fit": 9.0}).within(1.0).seconds == 9.0


def test_operations_order_the_methods(open_tiny: OpenSession) -> None:
    forecaster = Forecaster(open_tiny(), Recipe(epochs=3), 0)
    dearer = ("linear_probe", "top_layers:k=1", "bitfit", "full")
    operations = [forecaster.operations(parse_method(words)) for words in dearer]
    assert operations == sorted(operations) and operations[0] > 0
    for words in ("contrastive", "no_transfer:by=full"):
        assert forecaster.operations(parse_method(words)) > operations[0]
    assert forecaster.operations(parse_method("majority")) == forecaster.operations(parse_method("tfidf_svm")) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "classification", "multilabel"])
def test_every_rung_can_be_forecast(kind: str, open_tiny: OpenSession) -> None:
    session = open_tiny(kind, pair=kind == "regression")
    before = sorted(session.store.root.iterdir())
    forecaster = Forecaster(session, Recipe(epochs=1), 0)
    for words in SEVERAL:
        forecast = forecaster.forecast(parse_method(words))
        assert forecast.seconds > 0 and min(forecast.parts.values()) >= 0, words
        assert {"evaluation", "saving", "speed"} < forecast.parts.keys()
        assert (forecast.step is not None) == (words in SEVERAL[3:])
    assert sorted(session.store.root.iterdir()) == before  # a forecast leaves nothing


def test_the_first_start_is_of_the_methods_that_leave_blocks_frozen(open_tiny: OpenSession) -> None:
    session = open_tiny()
    forecaster = Forecaster(session, Recipe(), 0)
    assert session.backbone is not None
    chosen = [parse_method(one) for one in ("majority", "linear_probe", "full", "top_layers:k=1")]
    assert forecaster.first_start(chosen) == session.backbone.card.blocks - 1
    assert forecaster.first_start(chosen[:3]) is None


def test_more_epochs_take_longer(open_tiny: OpenSession) -> None:
    ticks = iter(range(10**9))  # a clock on which every look takes a second
    session = open_tiny()

    def forecast(epochs: int) -> dict[str, float]:
        forecaster = Forecaster(session, Recipe(epochs=epochs), 0, clock=lambda: float(next(ticks)))
        return dict(forecaster.forecast(parse_method("full")).parts)

    few, many = forecast(2), forecast(20)
    assert many["steps"] == pytest.approx(10 * few["steps"], rel=0.3)
    assert many["evaluation"] == few["evaluation"]


def test_pairs_read_together_are_forecast_on_that_reading(open_tiny: OpenSession) -> None:
    """The frozen pass of pairs that are read apart, done or not, is none of theirs."""
    together, probe, recipe = open_tiny(pair=True), parse_method("linear_probe"), Recipe(epochs=1)
    tiny: Any = together.backbone
    apart = replace(together, backbone=replace(tiny, card=replace(tiny.card, towers=2)))
    reads_each, reads_both = Forecaster(apart, recipe, 0), Forecaster(together, recipe, 0)
    crossed, full = reads_each.operations(parse_method("cross_encoder:by=full")), parse_method("full")
    assert crossed == reads_both.operations(full) != reads_each.operations(full)
    execute(apart, probe, recipe, 0, lambda done, text: None)
    assert reads_each.forecast(probe).parts["prefix"] == 0
    assert reads_each.forecast(parse_method("cross_encoder:by=linear_probe")).parts["prefix"] > 0


def test_the_pass_of_pairs_of_unlike_lengths_is_timed_without_padding_one_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock on which every padded token takes a second."""
    rows = [f"{'the king saw a play and ' * 8}{number},yes {number},{number % 2}" for number in range(300)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text_a,text_b,label", *rows]), encoding="utf-8")
    settings = RunSettings("tiny_text", runs=str(tmp_path / "runs"))
    session = open_session(Task.from_file(tmp_path / "pairs.csv"), [parse_method("linear_probe")], settings)
    tiny: Any = session.backbone
    apart = replace(tiny, card=replace(tiny.card, towers=2))
    taken, real = [0], type(tiny).states

    def states(self: Any, inputs: dict[str, Any]) -> Any:
        taken[0] += inputs["attention_mask"].numel()
        return real(self, inputs)

    monkeypatch.setattr(type(tiny), "states", states)
    forecaster = Forecaster(replace(session, backbone=apart), Recipe(epochs=1), 0, clock=lambda: float(taken[0]))
    assert forecaster.pass_rate == 1.0


def test_a_pass_that_is_there_costs_nothing(open_tiny: OpenSession) -> None:
    session, method = open_tiny(), parse_method("top_layers:k=1")
    forecaster = Forecaster(session, Recipe(epochs=1), 0)
    assert forecaster.forecast(method).parts["prefix"] > 0
    execute(session, method, Recipe(epochs=1), 0, lambda done, text: None)
    assert forecaster.forecast(method).parts["prefix"] == 0
    assert forecaster.forecast(parse_method("linear_probe")).parts["prefix"] == 0  # pooled features came with it


@pytest.mark.slow
def test_forecasts_come_near_real_runs(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    """In processor seconds, which other programs on the machine disturb least; within a factor that noise allows.

    The aim is 15 %: the printed ratios are what to look at.
    """
    session = open_session(Task.from_file("builtin:tickets"), [parse_method("full")], RunSettings(runs=str(tmp_path)))
    recipe = Recipe(epochs=1)
    forecaster = Forecaster(session, recipe, 0, clock=time.process_time)
    for words in ("linear_probe", "top_layers:k=1", "adapter", "full"):
        began = time.process_time()
        forecast = forecaster.forecast(parse_method(words))
        measured = time.process_time() - began
        result, known = execute(session, parse_method(words), recipe, 0, lambda done, text: None)
        assert not known and result.status == "ok"
        real = time.process_time() - began - measured
        with capsys.disabled():
            print(f"\n{words}: forecast {forecast.seconds:.2f} s, real {real:.2f} s, measuring {measured:.2f} s")
        assert 0.25 < forecast.seconds / real < 4
