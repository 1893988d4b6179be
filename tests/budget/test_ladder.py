"""`climb` from a file to `ladder.json`: what is written and when, what is returned, and what is told of mistakes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graftwork.budget import ladder
from graftwork.budget.forecast import Forecast
from graftwork.budget.ladder import climb
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.meter import Phase
from graftwork.core.method import Workbench
from graftwork.errors import ConfigError, GraftworkError, StorageError
from graftwork.pretrained import reading_length

Write = Callable[..., Path]
During = dict[str, Callable[[Workbench], None]]
DECISIONS = {
    "kept",
    "best so far",
    "not better",
    "failed",
    "not affordable",
    "interrupted",
    "not worth it",
    "not tried",
}


class Killed(BaseException):
    """Ends the process, as far as the code below it can tell."""


def climb_tiny(task: Path, tmp_path: Path, budget: str, **settings: Any) -> ladder.Ladder:
    places = {"runs": tmp_path / "runs", "out": tmp_path / "out"}
    return climb(task, budget, **{"backbone": "tiny_text", "epochs": 1, "precision": "fp32", **places, **settings})


def written(tmp_path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((tmp_path / "out" / "ladder.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """`majority` is foreseen to be the shortest, and nothing is fitted to find that out."""

    class Foreseen:
        def __init__(self, *session: Any, **clock: Any):
            pass

        def operations(self, method: ConfiguredMethod) -> float:
            return 0.0

        def forecast(self, method: ConfiguredMethod) -> Forecast:
            return Forecast({"fit": 0.001 if method.label == "majority" else 0.002})

    monkeypatch.setattr(ladder, "Forecaster", Foreseen)


def test_a_whole_climb_and_what_it_writes(write: Write, tmp_path: Path) -> None:
    seen: list[str] = []
    rungs = ["majority", "linear_probe", "top_layers:k=1:learning_rate=0.01", "top_layers"]
    found = climb_tiny(write(), tmp_path, "1min", rungs=rungs, progress=lambda done, text: seen.append(text))
    content = written(tmp_path)
    assert content == json.loads(json.dumps(found.content))
    assert content["format"] == 1 and content["budget"] == {"amount": 60.0, "unit": "s"}
    assert [note[:36] for note in content["notes"]] == ["top_layers was not tried: k must be "]
    assert content["rungs"][0]["method"] == "majority" and content["rungs"][0]["decision"] in ("best so far", "kept")
    assert [rung["chosen"] for rung in content["rungs"]] == [rung["decision"] == "kept" for rung in content["rungs"]]
    for rung in content["rungs"]:
        assert rung["decision"] in DECISIONS and rung["seed"] >= 0
        if rung["run"]:
            assert (tmp_path / "runs" / rung["run"] / "result.json").is_file()
            assert rung["predicted_seconds"] > 0 and rung["seconds"] > 0
            assert (rung["measuring_seconds"] > 0) == (rung["seed"] == 0)  # one more seed takes what the first took
            assert rung["validation"]["low"] <= rung["validation"]["score"] <= rung["validation"]["high"]
            baseline = rung["method"] in ("majority", "linear_probe") and rung["seed"] == 0
            assert (rung["expected_gain"] is None) == baseline
    assert [rung["run"] for rung in content["rungs"] if rung["chosen"]] == [content["chosen"]["run"]]
    assert Path(content["chosen"]["module"]) == found.run.folder / "module"
    assert found.run.module.predict(["good fine good"])
    majority = json.loads((tmp_path / "runs" / content["rungs"][0]["run"] / "result.json").read_text())
    assert content["baselines"] == {"majority": majority["scores"][content["metric"]]}
    assert 0 < content["spent"]["share"] <= 1.05 and content["spent"]["unit"] == "s" and content["stopped"]
    assert content["decision"]["worth"] == 0.005 and content["decision"]["validation_rows"] == 6
    assert {one["method"] for one in content["decision"]["methods"]} >= {"majority", "linear_probe"}
    assert set(content["rules"]) == {"order", "affordable", "worth it", "chosen", "averaged"}
    assert any(text == "majority: measuring" for text in seen)


def test_what_a_point_is_worth_is_kept_with_the_decision(write: Write, tmp_path: Path, in_turn: None) -> None:
    found = climb_tiny(write(), tmp_path, "1h", rungs="majority", worth=2)
    assert found.content["decision"]["worth"] == 0.02


def test_there_is_a_ladder_from_the_first_run_on(write: Write, tmp_path: Path, during: During, in_turn: None) -> None:
    """A process that is killed in its second run leaves the first as the best there is."""

    def die(bench: Workbench) -> None:
        raise Killed

    during["die"] = die
    with pytest.raises(Killed):
        climb_tiny(write(), tmp_path, "1h", rungs=["majority", "staged:act=die"])
    content = written(tmp_path)
    assert [(rung["method"], rung["decision"]) for rung in content["rungs"]] == [("majority", "kept")]
    assert content["chosen"]["method"] == "majority" and (Path(content["chosen"]["module"]) / "module.json").is_file()
    assert content["spent"]["amount"] > 0 and content["decision"]["chosen"] == "majority"


def test_where_long_texts_are_too_dear_a_shorter_reading_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dear:
        def __init__(self, *session: Any, **clock: Any):
            pass

        def operations(self, method: ConfiguredMethod) -> float:
            return 0.0

        def forecast(self, method: ConfiguredMethod) -> Forecast:
            return Forecast({"fit": 0.001 if method.label == "majority" else 1e6})

    monkeypatch.setattr(ladder, "Forecaster", Dear)
    monkeypatch.setattr(reading_length, "LONG", 40)
    for words, told in ((50, True), (5, False)):
        rows = [f"film {n} {'and ' * words},{n % 2}" for n in range(40)]
        (tmp_path / "films.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
        notes = climb_tiny(tmp_path / "films.csv", tmp_path, "1min", rungs=["majority", "adapter"]).content["notes"]
        assert [("--backbone tiny_text@32 reads" in note) for note in notes] == [True] * told
        assert climb_tiny(tmp_path / "films.csv", tmp_path, "1min", rungs="majority").content["notes"] == []
        named = climb_tiny(
            tmp_path / "films.csv", tmp_path, "1min", rungs=["majority", "adapter"], backbone="tiny_text@48"
        )
        assert named.content["notes"] == [], "whoever names a length has chosen"


def test_the_advice_to_read_less_imports_no_library_of_networks() -> None:
    """It is given at the end of a budget, and such an import takes a second."""
    code = "import graftwork.pretrained.reading_length, sys; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ctrl_c_in_the_second_run_leaves_the_best_so_far(
    write: Write, tmp_path: Path, during: During, in_turn: None
) -> None:
    def stop(bench: Workbench) -> None:
        raise KeyboardInterrupt

    during["stop"] = stop
    found = climb_tiny(write(), tmp_path, "1h", rungs=["majority", "staged:act=stop", "staged:act=later"])
    content = written(tmp_path)
    assert [(rung["method"], rung["decision"]) for rung in content["rungs"]][:2] == [
        ("majority", "kept"), ("staged:act=stop", "interrupted"),
    ]  # fmt: skip
    assert (
        content["stopped"] == "interrupted"
        and content["chosen"]["run"] == content["rungs"][0]["run"] == found.run.result.id
    )
    later = content["rungs"][2]
    assert (later["method"], later["run"], later["seconds"]) == ("staged:act=later", None, None)
    assert later["decision"] == "not tried", "nobody asked whether it was worth it"
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {found.run.result.id}


def test_ctrl_c_before_the_first_run_has_ended_is_ctrl_c(
    write: Write, tmp_path: Path, during: During, in_turn: None
) -> None:
    def stop(bench: Workbench) -> None:
        raise KeyboardInterrupt

    during["stop"] = stop
    with pytest.raises(KeyboardInterrupt):
        climb_tiny(write(), tmp_path, "1h", rungs=["staged:act=stop", "staged:act=later"])
    assert not (tmp_path / "out" / "ladder.json").exists()


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
    found = climb("builtin:tickets", "20s", backbone="tiny_text", precision="fp32", watch=watch, **places)
    assert watch.read().wall_seconds < 20 * 1.5  # benchmarks/decision/beside_trainer.py measures it closely
    assert found.content["spent"]["share"] < 1.5
    assert found.run.result.status == "ok"
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        rung["run"] for rung in found.content["rungs"] if rung["run"]
    }


def test_a_budget_too_small_for_one_run_is_told_with_what_was_spent(write: Write, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"does not pay for a single run[\s\S]*1 ms; reading the data[\s\S]*give about .* or more"
    ):
        climb_tiny(write(), tmp_path, "0.001s")
    content = written(tmp_path)
    assert content["chosen"] is content["decision"] is None and not list(tmp_path.glob("runs/*"))
    assert "kept" not in {rung["decision"] for rung in content["rungs"]} and content["rungs"]


def test_a_ladder_of_failures_says_why(write: Write, tmp_path: Path, during: During, in_turn: None) -> None:
    def fail(bench: Workbench) -> None:
        raise ValueError("no luck")

    during["fail"] = fail
    with pytest.raises(GraftworkError, match="no run succeeded; staged:act=fail failed: no luck"):
        climb_tiny(write(), tmp_path, "5min", rungs=["staged:act=fail"])
    assert [rung["decision"] for rung in written(tmp_path)["rungs"]] == ["failed"]


@pytest.mark.parametrize(
    ("budget", "settings", "error", "message"),
    [
        ("soon", {}, ConfigError, "not an amount"),
        ("1EUR", {}, ConfigError, "needs a price list"),
        ("5min", {"prices": "nowhere.toml"}, StorageError, "nowhere.toml"),
        ("5min", {"rungs": ["adaptor"]}, ConfigError, "did you mean 'adapter'"),
        ("5min", {"worth": -0.1}, ConfigError, r"--worth, [\s\S]*-0\.1[\s\S]*0 … 100"),
        ("5min", {"worth": 100.5}, ConfigError, r"--worth, [\s\S]*100\.5[\s\S]*0 … 100"),
        ("5min", {"worth": math.nan}, ConfigError, r"--worth, [\s\S]*nan"),
        ("5min", {"worth": math.inf}, ConfigError, r"--worth, [\s\S]*inf"),
    ],
)
def test_mistakes_are_told(
    budget: str, settings: dict[str, Any], error: type[GraftworkError], message: str, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        climb_tiny(write(), tmp_path, budget, **settings)
    assert not (tmp_path / "runs").exists() and not (tmp_path / "out").exists()
