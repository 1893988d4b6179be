"""`graft bank`, and the flags and words of `train` and `predict` that are about banks."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from graftwork.bank.bank_folder import BankFolder
from graftwork.cli.bank import command
from graftwork.io.files import read_json, write_json

Graft = Callable[..., Any]
Boards = Callable[[str], Any]


@pytest.fixture
def session(graft: Graft, kept_bank: Path) -> Path:
    """A bank with two versions of `tickets` and a task without a backbone, the test's own."""
    return Path(shutil.copytree(kept_bank, "shop.bank"))


@pytest.mark.slow
def test_a_bank_grows_and_is_listed(graft: Graft, session: Path, boards: Boards) -> None:
    lines = graft("bank", "ls", session).out.splitlines()
    assert lines[0].split() == ["task", "version", "kind", "method", "test", "trained", "bytes"]
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["always", "1", "classification", "majority"],
        ["tickets", "2", "classification", "top_layers"],
    ]
    assert lines[-1].startswith("2 tasks, ") and lines[-1].endswith(" in shop.bank")
    listed = json.loads(graft("bank", "ls", session, "--json").out)
    assert [task["name"] for task in listed] == ["always", "tickets"]
    assert listed[1]["labels"] == ["billing", "delivery", "technical"] and listed[1]["bytes"] > 1000
    again = graft("bank", "add", session, boards("classification").run_of("top_layers:k=1"), "--task", "tickets")
    assert "In the bank: tickets, version 2, in shop.bank, unchanged" in again.out and "rollback" not in again.out


def test_a_damaged_task_is_listed_as_that_beside_the_others(graft: Graft, session: Path) -> None:
    (session / "tasks" / "always" / "1" / "module.json").write_text("{}")
    done = graft("bank", "ls", session)
    lines = done.out.splitlines()
    assert done.code == 0 and lines[1].split()[:3] == ["always", "1", "damaged"] and lines[2].startswith("tickets")
    assert "always/1: module.json is damaged" in done.out
    assert "module.json is damaged" in json.loads(graft("bank", "ls", session, "--json").out)[0]["problem"]
    assert graft("predict", session, "tickets", "refund the invoice").code == 0
    assert "module.json is damaged" in graft("predict", session, "always", "refund the invoice").err
    assert graft("bank", "remove", session, "always").code == 0 and graft("bank", "check", session).code == 0


def test_an_empty_bank_is_listed_and_shown(graft: Graft) -> None:
    made = graft("bank", "create", "b", "--backbone", "tiny_text", "--precision", "fp32")
    assert "created b, backbone tiny_text, revision " in made.out and "graft bank add b MODULE" in made.out
    assert "graft bank add 'my bank' MODULE" in graft("bank", "create", "my bank").out
    assert "graft bank create 'no bank'" in graft("bank", "ls", "no bank").err
    assert graft("bank", "ls", "b").out == "0 tasks, 0 B, in b\n"
    assert "tiny_text, revision" in graft("bank", "show", "b").out and "in fp32" in graft("bank", "show", "b").out


def test_a_bank_and_its_tasks_are_shown(graft: Graft, session: Path) -> None:
    out = graft("bank", "show", session).out
    for words in ("bank       shop.bank", "tiny_text, revision ", "2, ", "always, tickets", "ledger     4 changes"):
        assert words in out
    assert json.loads(graft("bank", "show", session, "--json").out)["tasks"]["tickets"]["version"] == 2
    task = graft("bank", "show", session, "tickets").out
    assert "in bank    tickets, version 2 of 1, 2, added 20" in task and "method     top_layers" in task
    assert "board      none" in task and "predict_latency_seconds" in task
    assert "method     linear_probe" in graft("bank", "show", session, "tickets@1").out
    assert "do:       graft bank show shop.bank" in graft("show", session).err
    found = json.loads(graft("bank", "show", session, "tickets@1", "--json").out)
    assert (found["version"], found["versions"], found["module"]["method"]["name"]) == (1, [1, 2], "linear_probe")


def test_the_board_of_a_comparison_is_kept_with_the_task(graft: Graft, session: Path, boards: Boards) -> None:
    board = boards("classification")
    done = graft("bank", "add", session, board.run_of("tfidf_svm"), "--task", "with_board", "--board", board.folder)
    assert done.code == 0, done.err
    assert "leaderboard.json of its comparison" in graft("bank", "show", session, "with_board").out
    assert read_json(session / "tasks" / "with_board" / "1" / "leaderboard.json") == board.board
    bad = graft("bank", "add", session, board.run_of("majority"), "--task", "x", "--board", session / "tasks")
    assert bad.code == 2 and "leaderboard.json" in bad.err and not (session / "tasks" / "x").exists()


def test_the_backbone_that_a_bank_names_is_not_fetched(
    graft: Graft, tickets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(name: str, *, local_files_only: bool = False, **options: Any) -> str:
        assert local_files_only, "asked the hub"
        raise LocalEntryNotFoundError("not here")

    BankFolder.create(Path("evil.bank"), backbone={"id": "hf:evil/network", "revision": "a" * 64})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", kept)
    done = graft("train", tickets, "--method", "linear_probe", "--bank", "evil.bank")
    assert done.code == 2 and "a file that names one starts no download" in done.err


def test_versions_go_back_and_differ(graft: Graft, session: Path) -> None:
    differing = graft("bank", "diff", session, "tickets@1", "tickets").out
    for words in ("method", "name linear_probe → top_layers", "delta", " kB → ", "run"):
        assert words in differing
    assert "labels" not in differing
    assert graft("bank", "diff", session, "tickets@2", "tickets").out == "no difference\n"
    assert (
        graft("bank", "rollback", session, "tickets").out
        == "tickets: version 1 is the current one now; version 2 is kept\n"
    )
    assert graft("bank", "ls", session).out.splitlines()[2].split()[:4] == [
        "tickets",
        "1",
        "classification",
        "linear_probe",
    ]
    assert graft("bank", "rollback", session, "tickets", "--to", "2").code == 0
    late = graft("bank", "rollback", session, "tickets", "--to", "7")
    assert late.code == 2 and "'tickets' has no version 7" in late.err and "one of 1, 2" in late.err


def test_banks_differ(graft: Graft, session: Path, boards: Boards) -> None:
    shutil.copytree(session, "other.bank")
    assert graft("bank", "diff", session, "other.bank").out == "no difference\n"
    graft("bank", "rollback", "other.bank", "tickets")
    graft("bank", "rename", "other.bank", "always", "never")
    lines = graft("bank", "diff", session, "other.bank").out.splitlines()
    assert lines[:3] == ["- always   only in the first", "+ never   only in the second", "~ tickets"]
    assert any("name top_layers → linear_probe" in line for line in lines)
    found = json.loads(graft("bank", "diff", session, "other.bank", "--json").out)
    assert found["added"] == ["never"] and found["changed"]["tickets"]["method"][1]["name"] == "linear_probe"


def test_tasks_are_renamed_and_removed(graft: Graft, session: Path) -> None:
    assert graft("bank", "rename", session, "tickets", "teams").out == "renamed tickets to teams\n"
    assert graft("predict", session, "teams", "refund the invoice").code == 0
    assert graft("bank", "remove", session, "teams").out == "removed teams from shop.bank\n"
    assert [path.name for path in (session / "tasks").iterdir()] == ["always"]
    near = graft("bank", "remove", session, "allways")
    assert near.code == 2 and "did you mean 'always'?" in near.err
    taken = graft("bank", "rename", session, "always", "always")
    assert taken.code == 2 and "a task 'always' exists already" in taken.err
    assert "the ledger and 1 version are intact" in graft("bank", "check", session).out


def test_check_computes_everything_again(graft: Graft, session: Path) -> None:
    done = graft("bank", "check", session)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["ledger", "always@1", "tickets@1", "tickets@2"]
    assert lines[0].endswith("intact") and all(line.endswith("bit-identical logits") for line in lines[1:4])
    assert lines[4] == "no damage: the ledger and 3 versions are intact"
    listed = json.loads(graft("bank", "check", session, "--json").out)
    assert [item["difference"] for item in listed] == [None, 0.0, 0.0, 0.0]


def test_check_says_what_is_not_as_it_was(graft: Graft, session: Path) -> None:
    (session / "tasks" / "tickets" / "1" / "README.md").write_text("other words")
    path = session / "tasks" / "always" / "1" / "selftest.json"
    test = read_json(path)
    write_json(path, test | {"logits": [[value + 1 for value in row] for row in test["logits"]]})
    done = graft("bank", "check", session)
    assert done.code == 2
    assert done.out.count("FAILS") == 2 and done.out.count("a file of this task has changed since it was added") == 2
    assert "2 of 4 parts of this bank are damaged" in done.err and "shop.bank" in done.err


def test_predict_takes_a_bank_and_a_task(
    graft: Graft, session: Path, boards: Boards, written: Callable[..., Path]
) -> None:
    board = boards("classification")
    alone = graft("predict", board.run_of("top_layers:k=1"), "refund the invoice", "my parcel")
    assert graft("predict", session, "tickets", "refund the invoice", "my parcel").out == alone.out
    source = written("in.csv", ("text",), [("the app",), ("my parcel",)])
    assert graft("predict", session, "tickets", "--file", source, "--also", "always", "--out", "out.jsonl").code == 0
    answers = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [set(answer) for answer in answers] == [
        {"text", "label", "probabilities", "always.label", "always.probabilities"}
    ] * 2
    beside = graft("predict", session, "tickets", "the app", "--also", board.run_of("tfidf_svm"))
    assert beside.code == 0 and "  data: " in beside.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a bank needs the name of a task"),
        (("tickets",), "no input for task 'tickets'"),
        (("tickts",), "did you mean 'tickets'?"),
        (("tickts", "the app"), "did you mean 'tickets'?"),
        (("tickets", "the app", "--also", "alwayz"), "not a task module"),
    ],
)
def test_what_a_bank_is_not_asked_rightly(graft: Graft, session: Path, words: tuple[str, ...], message: str) -> None:
    done = graft("predict", session, *words)
    assert (done.code, done.out) == (2, "") and message in done.err


TRAIN = ("--method", "linear_probe", "--precision", "fp32")


def test_train_adds_to_a_bank_and_takes_its_backbone(graft: Graft, tickets: Path) -> None:
    done = graft("train", tickets, *TRAIN, "--backbone", "tiny_text", "--bank", "shop.bank")
    assert done.code == 0, done.err
    assert "In the bank: tickets, version 1, in shop.bank" in done.out
    assert 'Use it:      graft predict shop.bank tickets "a text"\n' in done.out
    again = json.loads(graft("train", tickets, *TRAIN, "--bank", "shop.bank", "--task", "teams", "--json").out)
    assert again["bank"] == {"path": "shop.bank", "task": "teams", "version": 1, "new": True} and again["reused"]
    assert graft("predict", "shop.bank", "teams", "refund the invoice").out.startswith("billing")
    assert graft("bank", "check", "shop.bank").code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--task", "x"), "--task needs --bank"),
        (("--bank", "b", "--task", "../x"), "not a name for a task"),
        (("--bank", "b", "--task", ".x"), "the first not a dot"),
        (("--bank", "b", "--task", "x" * 65), "at most 64"),
        (("--bank", "fp32.bank", "--precision", "bf16"), "the bank is in another precision"),
        (("--bank", "fp32.bank", "--backbone", "random:tiny_text"), "got:      random:tiny_text, revision"),
    ],
)
def test_nothing_is_trained_for_a_bank_that_would_not_take_it(
    graft: Graft, tickets: Path, flags: tuple[str, ...], message: str
) -> None:
    graft("bank", "create", "fp32.bank", "--backbone", "tiny_text", "--precision", "fp32")
    done = graft("train", tickets, "--method", "majority", *flags)
    assert done.code == 2 and message in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ls", "nowhere"), "no bank here"),
        (("create", "shop.bank"), "a bank exists already"),
        (("create", "shop.bank/tasks"), "the folder is not empty"),
        (("create", "new", "--precision", "fp16"), "unknown precision 'fp16'"),
        (("create", "new", "--backbone", "minilmm"), "did you mean 'minilm'?"),
        (("add", "shop.bank", "nowhere"), "not a task module"),
        (("show", "shop.bank", "tickets@x"), "not a version"),
        (("show", "shop.bank", "tickets@9"), "'tickets' has no version 9"),
        (("diff", "shop.bank", "nowhere"), "no bank here"),
        (("rollback", "shop.bank", "always"), "'always' has no version before 1"),
        (("frobnicate",), "No such command 'frobnicate'"),
    ],
)
def test_mistakes_are_said(graft: Graft, session: Path, words: tuple[str, ...], message: str) -> None:
    done = graft("bank", *words)
    assert done.code == 2 and message in done.err
    assert not Path("new").exists() and not Path("nowhere").exists()


def test_the_document_names_real_commands_and_all_that_change_or_show_a_bank() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "bank.md").read_text()
    named = set(re.findall(r"^    graft bank ([a-z-]+)", text, flags=re.MULTILINE))
    assert named <= set(command.commands)
    assert named >= {"create", "add", "remove", "rename", "ls", "show", "check", "diff", "rollback"}


def test_without_a_command_it_lists_them_whole(graft: Graft) -> None:
    done = graft("bank")
    assert (done.code, done.err) == (0, "")
    assert "..." not in done.out.partition("Commands:")[2]
    assert "The ledger, which lists all changes" in " ".join(done.out.split())


@pytest.mark.parametrize("name", sorted(command.commands))
def test_each_command_explains_itself(name: str, graft: Graft) -> None:
    done = graft("bank", name, "--help")
    assert done.code == 0 and f"Usage: graft bank {name} [OPTIONS]" in done.out
