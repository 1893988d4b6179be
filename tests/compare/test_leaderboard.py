"""What `compare` makes of its arguments, and what it tells and writes of what it decided."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graftwork.compare import leaderboard
from graftwork.compare.advice import advice
from graftwork.compare.leaderboard import compare
from graftwork.compare.search import Outlook
from graftwork.decision.standing import Standing
from graftwork.errors import ConfigError, UnknownName
from graftwork.registry import methods
from sessions import Write


def test_methods_as_a_list_or_as_one_string() -> None:
    listed = [item.label for item in leaderboard.choose_methods(["majority", " adapter:size=8"])]
    assert listed == ["majority", "adapter:size=8"]
    assert [item.label for item in leaderboard.choose_methods("majority, adapter:size=8")] == listed
    every = [item.config["name"] for item in leaderboard.choose_methods(None)]
    only_named = {"average", "contrastive", "ia3", "no_transfer", "prefix", "prompt", "verbalised", "zero_shot"}
    assert sorted({*every, *only_named}) == methods.names()
    assert not {"contrastive", "no_transfer"} & set(every)


def test_random_weights_for_the_methods_that_use_a_backbone() -> None:
    chosen = leaderboard.chosen_methods("majority,lora:rank=4,no_transfer:by=full", True)
    assert [item.label for item in chosen] == [
        "majority", "lora:rank=4", "no_transfer:by=full", "no_transfer:by=lora:rank=4",
    ]  # fmt: skip
    assert leaderboard.chosen_methods(None, True)[-1].label == "no_transfer:by=full"
    with pytest.raises(ConfigError, match="none can start from random weights"):
        leaderboard.chosen_methods("majority,tfidf_svm", True)


def test_methods_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        leaderboard.choose_methods("lora,lora:rank=8")
    with pytest.raises(ConfigError, match="no method is named"):
        leaderboard.choose_methods([])
    with pytest.raises(UnknownName, match="did you mean 'lora'"):
        leaderboard.choose_methods("lorra")


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/usr/bin/graft", "graft compare 'my data.csv'"),
        ("/lib/graftwork/__main__.py", "graft compare 'my data.csv'"),
        ("/home/me/study.py", ""),
    ],
)
def test_the_command_can_be_typed_again(program: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program, "compare", "my data.csv"])
    assert leaderboard.command_line() == command


class Watching:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.plan: list[tuple[Outlook, bool]] = []
        self.runs: list[str] = []
        self.standings: list[tuple[int, float, float]] = []  # runs that went through, seconds left and gone

    def planned(self, outlook: Outlook, exhaustive: bool) -> None:
        self.plan.append((outlook, exhaustive))

    def goes_on(self, run: str, seconds_gone: float, seconds_left: float) -> None:
        self.runs.append(run)

    def stands(self, standing: Standing, seconds_gone: float, seconds_left: float) -> None:
        self.standings.append((len(standing.run_scores), seconds_left, seconds_gone))


def made(data: Path, folder: Path, **settings: Any) -> tuple[leaderboard.Leaderboard, Watching]:
    watching = Watching()
    settings = {"methods": "majority,tfidf_svm", "seeds": 4} | settings
    return compare(data, runs=folder / "runs", out=folder / "out", watch=watching, jobs=1, **settings), watching


def test_a_search_is_told_as_it_goes_and_what_it_chose_is_written(write: Write, tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    board, watching = made(write(), tmp_path, progress=lambda done, text: seen.append((done, text)), worth=2)
    ((outlook, exhaustive),) = watching.plan
    assert (outlook.runs, exhaustive) == (8, False)
    assert [runs for runs, _, _ in watching.standings] == list(range(1, 1 + board.executed))
    assert all(left >= 0 and gone > 0 for _, left, gone in watching.standings) and watching.standings[-1][1] == 0
    assert watching.runs[0] == "majority seed 0"
    assert seen[0][1] == "majority seed 0: starting" and all(0 <= done <= 1 for done, _ in seen)
    decision = board.content["decision"]
    assert decision["chosen"] == "tfidf_svm" and decision["worth"] == 0.02 and decision["left"] == []
    assert {row["method"]: row["n_seeds"] for row in board.rows}["tfidf_svm"] == 3
    assert json.loads((tmp_path / "out/leaderboard.json").read_text()) == board.content
    assert advice(board.content)[0] in (tmp_path / "out/report.html").read_text(encoding="utf-8")


def test_exhaustive_runs_all_of_it(write: Write, tmp_path: Path) -> None:
    board, watching = made(write(), tmp_path, exhaustive=True)
    assert watching.plan[0][1] and board.executed == 8 == len(watching.standings)
    assert {row["n_seeds"] for row in board.rows} == {4} and board.content["decision"]["chosen"] == "tfidf_svm"
    again, _ = made(write(), tmp_path, exhaustive=True)
    assert (again.executed, again.reused) == (0, 8)


@pytest.mark.parametrize("worth", [-1, 101, float("nan")])
def test_a_worth_that_makes_no_sense(worth: float, write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--worth, the points by which"):
        made(write(), tmp_path, worth=worth)
    assert not (tmp_path / "runs").exists()
