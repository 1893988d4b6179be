"""The mean of the weights of the chosen method's runs: when a comparison makes it, and what it says of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from boards import board, decision, usual

from graftwork.compare.advice import advice
from graftwork.compare.averaged_runs import average_lines, average_runs, with_average
from graftwork.compare.grid import Runner, run_all
from graftwork.compare.leaderboard import compare
from graftwork.compare.leaderboard_display import Leaderboard
from graftwork.compare.workers import Sessions, one_by_one
from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.decision.traits import Arm
from graftwork.errors import StorageError
from graftwork.run.session import Session
from sessions import Write

FULL = "full:learning_rate=0.003"
AVERAGE = {
    "method": "average:by=full", "of": "full", "run": "abc", "runs": 3, "validation": 0.95, "kept": True,
    "scores": {"accuracy": 0.947}, "low": 0.92, "high": 0.97, "costs": {"train_seconds": {"value": 102.0}},
}  # fmt: skip


def told(**average: Any) -> dict[str, Any]:
    """A board that chose `full`, and averaged its runs."""
    made = board(usual(), decision=decision("full", {"full": 0.001, "adapter": 0.004}))
    return made | {"averaged": AVERAGE | average}


def test_the_advice_tells_its_score_after_that_of_the_method() -> None:
    assert advice(told())[1] == (
        "The mean of the weights of its 3 runs: accuracy 94.7 on test (92.0 … 97.0), at no further training than their "
        "1 min 42 s."
    )
    assert average_lines(told(low=None, high=None)) == [
        "The mean of the weights of its 3 runs: accuracy 94.7 on test, at no further training than their 1 min 42 s."
    ]


def test_below_its_runs_on_validation_it_is_not_told_and_not_used() -> None:
    made = told(kept=False)
    assert average_lines(made) == [] and advice(made) == advice(board(usual(), decision=made["decision"]))
    full = next(one for one in made["rows"] if one["method"] == "full")
    assert with_average(full, made) is full
    chosen = Leaderboard(made, None, 0, 0).chosen
    assert chosen is not None and chosen.average is None


def test_its_module_is_the_first_of_the_method_it_is_of() -> None:
    made = told()
    named = {one["method"]: one for one in made["rows"]}
    assert with_average(named["full"], made)["runs"] == ["abc", *named["full"]["runs"]]
    assert with_average(named["full"], made)["costs"] == named["full"]["costs"]
    assert with_average(named["adapter"], made) is named["adapter"]
    chosen = Leaderboard(made, None, 0, 0).chosen
    assert chosen is not None and chosen.average == "abc"


def test_a_comparison_averages_the_runs_of_what_it_chose(write: Write, tmp_path: Path) -> None:
    places = {"runs": tmp_path / "runs", "out": tmp_path / "out", "cache": tmp_path / "cache"}
    settings: dict[str, Any] = {"backbone": "tiny_text", "epochs": 8, "seeds": 2, "precision": "fp32", "jobs": 1}
    made = compare(write(), methods=f"majority,{FULL}", exhaustive=True, **settings, **places)
    assert made.content["decision"]["chosen"] == FULL
    found = made.content["averaged"]
    assert (found["of"], found["runs"], made.executed) == (FULL, 2, 5)
    assert made.content["search_costs"]["runs"]["value"] == 5
    result = json.loads((tmp_path / "runs" / found["run"] / "result.json").read_text())
    assert result["scores"] == found["scores"] and result["facts"]["averaged"] == 2
    assert json.loads((tmp_path / "out/leaderboard.json").read_text())["averaged"] == found
    chosen = made.chosen
    assert chosen is not None and chosen.module_folder is not None
    assert (chosen.module_folder.parent.name == found["run"]) == found["kept"]
    again = compare(write(), methods=f"majority,{FULL}", exhaustive=True, **settings, **places)
    assert (again.executed, again.reused) == (0, 5) and again.content["averaged"] == found


@pytest.mark.parametrize(
    ("words", "seeds", "recipe"),
    [
        (FULL, 1, Recipe(epochs=1)),
        ("adapter", 2, Recipe(epochs=1)),
        (FULL, 2, Recipe(epochs=1, varied=("order",))),
        ("linear_probe", 2, Recipe(epochs=1)),
    ],
)
def test_what_is_not_averaged(words: str, seeds: int, recipe: Recipe, open_tiny: Callable[..., Session]) -> None:
    """One run, runs with starts of their own, runs that vary in part, and runs that are all the same."""
    runner = Runner(open_tiny(), [parse_method(words)], recipe)
    run_all(runner, seeds, lambda order, done, text: None, lambda entry: None)
    assert average_runs(runner, Arm.of(parse_method(words)), lambda order, done, text: None) is None


def test_runs_of_averages_on_a_board_share_no_training(open_tiny: Callable[..., Session]) -> None:
    runner = Runner(open_tiny(), [parse_method("average:runs=2:by=full"), parse_method("full")], Recipe(epochs=1))
    average, full = runner.entries
    assert [runner.order(average, seed).seed for seed in range(3)] == [0, 2, 4]
    assert [runner.order(full, seed).seed for seed in range(3)] == [0, 1, 2]


def test_a_comparison_goes_without_an_average_that_can_not_be_made(open_tiny: Callable[..., Session]) -> None:
    """The disk is full, or a run's module was deleted."""
    session, full = open_tiny(), parse_method(FULL)
    runner = Runner(session, [full], Recipe(epochs=1))
    run_all(runner, 2, lambda order, done, text: None, lambda entry: None)

    def full_disk(orders: Any, report: Any) -> Any:
        raise StorageError("no space is left")

    runner.crew = full_disk
    assert average_runs(runner, Arm.of(full), lambda order, done, text: None) is None
    shutil.rmtree(session.store.root / runner.entries[0].runs[0].id / "module")
    runner.crew = partial(one_by_one, Sessions(session))
    assert average_runs(runner, Arm.of(full), lambda order, done, text: None) is None
    assert len(runner.done) == 2
