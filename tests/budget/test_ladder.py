"""The ladder: its order, what is affordable, what is worth it, what is stopped, what is chosen and written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from graftwork.budget import ladder
from graftwork.budget.forecast import Forecast
from graftwork.budget.ladder import Climber, climb
from graftwork.budget.purse import Budget, Purse
from graftwork.config import Prices
from graftwork.core.meter import Phase
from graftwork.core.method import Setting, Workbench
from graftwork.core.run import Recipe
from graftwork.errors import ConfigError, GraftworkError, StorageError
from graftwork.methods.majority import Constant, Majority
from graftwork.registry import methods
from graftwork.run.evidence import Evidence
from graftwork.run.methods import Named, parse_method
from graftwork.run.shop import Shop

Write = Callable[..., Path]
OpenShop = Callable[..., Shop]
NOISE = np.random.default_rng(1).normal(0, 0.01, 1000)


@dataclass
class FakeWatch:
    """Advances when a method works."""

    seconds: float = 0.0

    def read(self) -> Phase:
        return Phase(self.seconds, self.seconds)


WATCH = FakeWatch()


@dataclass(frozen=True)
class Paid:
    """The majority baseline, as a method trained by gradient that takes its time."""

    seconds: int = 1
    learning_rate: float = 0.1

    VERSION: ClassVar[int] = 1
    uses_backbone: ClassVar[bool] = False

    def unfit(self, task: Any, card: Any) -> str:
        return ""

    def attach(self, model: Any) -> None:
        """Never called: without a backbone there is no model."""

    def fit(self, bench: Workbench) -> Constant:
        for tenth in range(10 * self.seconds):
            WATCH.seconds += 0.1
            bench.progress(tenth / (10 * self.seconds), "working")
        if self.learning_rate > 9:
            raise ValueError("no luck")
        return Majority().fit(bench)

    def restore(self, setting: Setting, delta: dict[str, Any], facts: Any) -> Constant:
        return Majority().restore(setting, delta, facts)


@dataclass
class Foreseen:
    """Forecasts that are right, times `wrong`."""

    wrong: float = 1.0
    measured: list[int] = field(default_factory=list)

    def operations(self, method: Named) -> float:
        return float(method.config["seconds"])

    def forecast(self, method: Named) -> Forecast:
        WATCH.seconds += 0.1
        self.measured.append(method.config["seconds"])
        return Forecast({"fit": self.wrong * method.config["seconds"]})


@pytest.fixture(autouse=True)
def paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods._parts, "paid", Paid)
    WATCH.seconds = 0.0


@pytest.fixture
def climbed(open_tiny: OpenShop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Climber]:
    """`climbed(budget, seconds, scores)`: methods that take so many seconds and reach these scores, in that order."""

    def run(
        budget: float, seconds: list[int], scores: list[float] | None = None, wrong: float = 1.0, known: bool = False
    ) -> Climber:
        found: Iterator[float] = iter(scores or [0.1 + 0.05 * place for place in range(len(seconds))])
        monkeypatch.setattr(ladder, "validation_evidence", lambda dataset, folder: evidence(next(found)))
        monkeypatch.setattr(ladder, "_price_alone", lambda rung: float(rung.method.config["seconds"]))
        purse = Purse(Budget(budget, "s"), Prices(), WATCH)
        climber = Climber(open_tiny(), purse, Foreseen(wrong), Recipe(), 0, lambda done, text: None)
        climber.climb([parse_method(f"paid:seconds={each}") for each in seconds])
        return climber

    return run


def evidence(score: float, noise: Any = 0.0) -> Evidence:
    return Evidence(score, score + noise + NOISE)


def decisions(climber: Climber) -> list[tuple[int, str]]:
    return [(rung.method.config["seconds"], rung.decision) for rung in climber.rungs]


def test_the_cheapest_first_whatever_they_are_called(climbed: Callable[..., Climber]) -> None:
    climber = climbed(100, [20, 3, 7, 1])
    assert decisions(climber) == [(1, "kept"), (3, "kept"), (7, "kept"), (20, "kept")]
    assert climber.stopped == ""
    for rung in climber.rungs:
        assert rung.seconds == pytest.approx(rung.method.config["seconds"])
        assert rung.measuring_seconds == pytest.approx(0.1)


def test_what_is_left_does_not_pay_for_the_next(climbed: Callable[..., Climber]) -> None:
    climber = climbed(40, [1, 10, 30, 31])
    assert decisions(climber) == [(1, "kept"), (10, "kept"), (30, "not affordable"), (31, "not affordable")]
    assert climber.rungs[2].reason == "needed 1.15 x 30 s, left 28.7 s"
    assert climber.purse.spent() <= 40
    assert climber.rungs[3].forecast is None  # nothing is spent on measuring what is dearer still


@pytest.mark.parametrize(("budget", "decision"), [(12, "kept"), (11.3, "not affordable")])
def test_the_margin_counts(budget: float, decision: str, climbed: Callable[..., Climber]) -> None:
    assert decisions(climbed(budget, [10])) == [(10, decision)]


def test_what_is_hopeless_is_not_measured(climbed: Callable[..., Climber]) -> None:
    climber = climbed(10, [1, 2, 1000])
    assert climber.rungs[2].decision == "not affordable"
    assert "by its operations needed about 16 min 40 s, left 6.8 s" in climber.rungs[2].reason
    assert isinstance(climber.forecasts, Foreseen) and climber.forecasts.measured == [1, 2]


@pytest.mark.parametrize("wrong", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("budget", [20, 100])
def test_a_wrong_forecast_does_not_overrun(wrong: float, budget: float, climbed: Callable[..., Climber]) -> None:
    climber = climbed(budget, [1, 5, 150, 200], wrong=wrong)
    assert climber.rungs[2].decision in ("interrupted", "not affordable")
    assert climber.purse.spent() <= 1.05 * budget
    store = climber.shop.store
    assert len(store.ids()) == 2
    assert {path.name for path in store.root.iterdir()} == set(store.ids())  # nothing half-written
    if climber.rungs[2].decision == "interrupted":
        assert climber.rungs[2].result is None and climber.stopped == "the budget is spent"
        assert climber.rungs[3].decision == "not affordable"


def test_at_the_ceiling_nothing_dearer_is_tried(climbed: Callable[..., Climber]) -> None:
    climber = climbed(1000, [1, 2, 3], [0.5, 0.996])
    assert decisions(climber) == [(1, "kept"), (2, "kept"), (3, "stopped")]
    assert "at the ceiling, 99.6 on validation" in climber.rungs[2].reason
    climber = climbed(1000, [4, 5, 6], [0.5, 0.985])
    assert "interval of paid:seconds=5 on validation reaches 100" in climber.stopped


def test_two_that_bring_nothing_end_it(climbed: Callable[..., Climber]) -> None:
    climber = climbed(1000, [1, 2, 3, 4, 5, 6], [0.5, 0.5, 0.6, 0.6, 0.59])
    kept = ["kept", "not better", "kept", "not better", "not better", "stopped"]
    assert [decision for _, decision in decisions(climber)] == kept
    assert climber.stopped == "not worth it: 2 rungs in a row did not beat paid:seconds=3 by more than the noise"
    assert climber.chosen() is climber.rungs[2]


@pytest.mark.parametrize(
    ("dearer", "stopped"),
    [
        (["tfidf_svm", "linear_probe"], ""),
        (["no_transfer:by=top_layers:k=1", "contrastive:steps=1"], "not worth it: 2 rungs in a row"),
    ],
)
def test_baselines_that_bring_nothing_are_no_reason_to_stop(
    dearer: list[str], stopped: str, open_tiny: OpenShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "validation_evidence", lambda dataset, folder: evidence(0.5))
    forecasts = Foreseen()
    monkeypatch.setattr(forecasts, "operations", lambda method: 1.0)
    monkeypatch.setattr(forecasts, "forecast", lambda method: Forecast({"fit": 1.0}))
    purse = Purse(Budget(100, "s"), Prices(), WATCH)
    climber = Climber(open_tiny(), purse, forecasts, Recipe(), 0, lambda done, text: None)
    climber.climb([parse_method(words) for words in ("majority", *dearer)])
    assert [rung.decision for rung in climber.rungs] == ["kept", "not better", "not better"]
    assert climber.stopped.startswith(stopped) and bool(climber.stopped) == bool(stopped)


def test_the_cheapest_within_the_noise_is_chosen(
    climbed: Callable[..., Climber], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "_price_alone", lambda rung: rung.method.config["seconds"])
    climber = climbed(1000, [1, 2, 3], [0.5, 0.60, 0.61])
    assert climber.chosen() is climber.rungs[2]
    noisy = np.random.default_rng(2).normal(0, 0.02, 1000)
    climber.rungs[2].evidence = evidence(0.61, noisy)
    assert climber.chosen() is climber.rungs[1]
    assert evidence(0.61, 10 * noisy).gain_over(evidence(0.5, noisy))[0] < 0
    climber.rungs[2].evidence = evidence(0.61, 10 * noisy)  # it shows nothing any more, but the second beats the first
    assert climber.chosen() is climber.rungs[1]


def test_a_run_that_is_there_costs_nothing(climbed: Callable[..., Climber]) -> None:
    climbed(100, [1, 20])
    WATCH.seconds = 0.0
    climber = climbed(10, [1, 20, 2], [0.1, 0.2, 0.3])
    assert [(rung.reused, rung.decision) for rung in climber.rungs] == [
        (True, "kept"),
        (True, "kept"),
        (False, "kept"),
    ]
    assert climber.purse.spent() == pytest.approx(2.1)


def test_a_rung_that_fails_does_not_end_it(climbed: Callable[..., Climber], open_tiny: OpenShop) -> None:
    purse = Purse(Budget(100, "s"), Prices(), WATCH)
    climber = Climber(open_tiny(), purse, Foreseen(), Recipe(), 0, lambda done, text: None)
    climber.climb([parse_method("paid:learning_rate=10"), parse_method("paid:seconds=2")])
    assert [(rung.decision, rung.reason) for rung in climber.rungs] == [("failed", "no luck"), ("kept", "")]


def climb_tiny(task: Path, tmp_path: Path, budget: str, **settings: Any) -> ladder.Ladder:
    places = {"runs": tmp_path / "runs", "out": tmp_path / "out"}
    return climb(task, budget, backbone="tiny_text", epochs=1, precision="fp32", **places, **settings)


def test_a_whole_climb_and_what_it_writes(write: Write, tmp_path: Path) -> None:
    seen: list[str] = []
    found = climb_tiny(write(), tmp_path, "10min", progress=lambda done, text: seen.append(text))
    content = json.loads((tmp_path / "out" / "ladder.json").read_text(encoding="utf-8"))
    assert content == json.loads(json.dumps(found.content))
    assert content["format"] == 1 and content["budget"] == {"amount": 600.0, "unit": "s"}
    assert content["notes"][0].startswith("top_layers is no rung here: k must")
    assert content["rungs"][0]["method"] == "majority" and content["rungs"][0]["decision"] == "kept"
    for rung in content["rungs"]:
        if rung["run"]:
            assert (tmp_path / "runs" / rung["run"] / "result.json").is_file()
            assert rung["predicted_seconds"] > 0 and rung["seconds"] > 0 and rung["measuring_seconds"] > 0
            assert rung["validation"]["low"] <= rung["validation"]["score"] <= rung["validation"]["high"]
    assert [rung["run"] for rung in content["rungs"] if rung["chosen"]] == [content["chosen"]["run"]]
    assert Path(content["chosen"]["module"]) == found.run.folder / "module"
    assert found.run.module.predict(["good fine good"])
    assert 0 < content["spent"]["share"] < 1 and content["spent"]["unit"] == "s"
    assert set(content["rules"]) == {"order", "affordable", "worth it", "chosen"}
    assert any(text == "majority: measuring" for text in seen)


def test_a_place_that_cannot_be_written_is_told_before_the_budget_is_spent(write: Write, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    with pytest.raises(StorageError, match="out"):
        climb_tiny(write(), tmp_path, "10min")
    assert not list(tmp_path.glob("runs/*"))


@dataclass
class ProcessorWatch:
    """Takes processor seconds for wall-clock ones: real work, whatever else the machine is busy with."""

    began: float = field(default_factory=time.process_time)

    def read(self) -> Phase:
        seconds = time.process_time() - self.began
        return Phase(seconds, seconds)


@pytest.mark.slow
def test_a_small_budget_is_kept(tmp_path: Path) -> None:
    watch = ProcessorWatch()
    places = {"runs": tmp_path / "runs", "out": tmp_path / "out"}
    found = climb("builtin:tickets", "2s", backbone="tiny_text", precision="fp32", watch=watch, **places)
    assert watch.read().wall_seconds < 2 * 1.05
    assert found.content["spent"]["share"] < 1.05
    assert found.run.result.status == "ok"
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        rung["run"] for rung in found.content["rungs"] if rung["run"]
    }


@pytest.mark.parametrize(
    ("budget", "settings", "error", "message"),
    [
        ("soon", {}, ConfigError, "not an amount"),
        ("1EUR", {}, ConfigError, "needs a price list"),
        ("5min", {"prices": "nowhere.toml"}, StorageError, "nowhere.toml"),
        ("5min", {"rungs": ["adaptor"]}, ConfigError, "did you mean 'adapter'"),
        ("0.001s", {}, ConfigError, "does not pay for a single run"),
        ("5min", {"rungs": ["paid:seconds=1:learning_rate=10"]}, GraftworkError, "no rung ended well"),
    ],
)
def test_mistakes_are_told(
    budget: str, settings: dict[str, Any], error: type[GraftworkError], message: str, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        climb_tiny(write(), tmp_path, budget, **settings)
