"""`--json`: one document on stdout and nothing else, of every command that prints facts."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from graftwork.cli.main import command_summaries
from graftwork.decision.earlier_boards import own_file
from graftwork.registry import methods

Graft = Callable[..., Any]
Boards = Callable[[str], Any]


def commands() -> dict[tuple[str, ...], click.Command]:
    """Every command that does something, by the words that call it."""
    found: dict[tuple[str, ...], click.Command] = {}
    for name in command_summaries():
        command: click.Command = importlib.import_module(f"graftwork.cli.{name}").command
        parts = command.commands if isinstance(command, click.Group) else {}
        found |= {(name, part): one for part, one in parts.items()} if parts else {(name,): command}
    return found


@pytest.fixture
def document(graft: Graft) -> Callable[..., Any]:
    """`document("ls", "methods")`: what `graft ls methods --json` prints, parsed; stderr is empty."""

    def call(*arguments: object) -> Any:
        done = graft(*arguments, "--json")
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    return call


def test_every_command_has_it() -> None:
    without = {
        words
        for words, command in commands().items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == {("serve",)}


def test_parts_runs_and_settings_are_listed(document: Callable[..., Any], boards: Boards) -> None:
    listed = document("ls", "methods")
    assert [one["name"] for one in listed] == methods.names() and all(one["summary"] for one in listed)
    adapter = document("ls", "methods", "adapter")
    assert {"name": "size", "default": 64, "meaning": "width of the bottleneck"} in adapter["settings"]
    assert {"name": "minilm"} in document("ls", "backbones") and document("ls") == []
    board = boards("classification")
    runs = {run["run"]: run for run in document("ls", "--runs", board.runs)}
    run = runs[board.run_of("tfidf_svm").name]
    assert (run["task"], run["method"], run["seed"], run["status"]) == ("data", "tfidf_svm", 0, "ok")
    assert run["scores"]["accuracy"] == 1.0 and run["train_seconds"] > 0


def test_the_cache_is_listed_and_cleared(graft: Graft, document: Callable[..., Any], tickets: Path) -> None:
    assert document("cache")["passes"]["entries"] == []
    run = ("--backbone", "tiny_text", "--epochs", "1", "--method", "top_layers:k=1")
    assert graft("train", tickets, *run).code == 0
    listed = document("cache", "ls")["passes"]["entries"]
    assert len(listed) == 2 and all(one["backbone"] == "tiny_text" and one["bytes"] > 0 for one in listed)
    assert listed[0]["used"] >= listed[1]["used"]
    cleared = document("cache", "clear")
    assert cleared["action"] == "clear"
    assert {one["path"] for one in cleared["passes"]["entries"]} == {one["path"] for one in listed}
    assert document("cache")["passes"]["entries"] == []


def test_earlier_boards_are_listed_added_and_forgotten(
    document: Callable[..., Any], boards: Boards, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    before = document("experience")
    assert before["own"] == [] and before["own_file"] == str(own_file())
    assert {"name", "traits", "scores"} <= before["shipped"][0].keys()
    (added,) = document("experience", "add", boards("classification").folder)["added"]
    assert document("experience", "ls")["own"] == [added]
    assert document("experience", "forget", added["name"]) == {"forgotten": [added["name"]]}
    assert document("experience")["own"] == []


def test_changes_of_a_bank(document: Callable[..., Any], boards: Boards) -> None:
    board = boards("classification")
    made = document("bank", "create", "shop.bank")
    assert (made["bank"], made["tasks"], made["backbone"]) == ("shop.bank", {}, None)
    for version, method in enumerate(("linear_probe", "top_layers:k=1"), start=1):
        added = document("bank", "add", "shop.bank", board.run_of(method), "--task", "tickets")
        assert added["bank"] == {"path": "shop.bank", "task": "tickets", "version": version, "new": True}
    back = document("bank", "rollback", "shop.bank", "tickets")
    assert (back["name"], back["version"], back["before"]) == ("tickets", 1, 2)
    renamed = document("bank", "rename", "shop.bank", "tickets", "teams")
    assert renamed == {"bank": "shop.bank", "renamed": "tickets", "to": "teams"}
    assert document("bank", "remove", "shop.bank", "teams") == {"bank": "shop.bank", "removed": "teams"}
    assert document("bank", "ls", "shop.bank") == []
