"""What the tests of the commands share: `graft` called in this process, small files, and boards computed once."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graftwork.cli.main import main

QUICK = ("--backbone", "tiny_text", "--epochs", "1")
TOPICS = {"delivery": "where is my parcel", "billing": "refund the invoice", "technical": "the app has crashed"}


@dataclass(frozen=True)
class Outcome:
    """What a call of `graft` left on the terminal."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Compared:
    """A finished comparison: the command again is `graft("compare", *arguments)`."""

    arguments: tuple[str, ...]
    folder: Path
    runs: Path
    outcome: Outcome

    @property
    def board(self) -> dict[str, Any]:
        """`leaderboard.json`."""
        content: dict[str, Any] = json.loads((self.folder / "leaderboard.json").read_text(encoding="utf-8"))
        return content

    def run_of(self, method: str) -> Path:
        """The folder of the method's run with seed 0."""
        row = next(row for row in self.board["rows"] if row["method"] == method)
        return self.runs / row["runs"][0]


def call(*arguments: object) -> Outcome:
    """`graft ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """A CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def ticket_rows(count: int) -> list[tuple[str, str]]:
    """Texts that name their class in words, classes in turn."""
    topics = list(TOPICS.items())
    return [(f"{topics[i % 3][1]} number {i}", topics[i % 3][0]) for i in range(count)]


def file_for(kind: str, path: Path) -> Path:
    """Forty rows of a kind of task; `pair` is a classification of two texts."""
    if kind == "pair":
        answers = ("same", "different")
        pairs = [(f"call me at {i}", f"{('call', 'write')[i % 2]} me at {i}", answers[i % 2]) for i in range(40)]
        return write_rows(path, ("text_a", "text_b", "label"), pairs)
    if kind == "regression":
        return write_rows(path, ("text", "label"), [("very " * (i % 10) + f"good {i}", i % 10 / 2) for i in range(40)])
    if kind == "multilabel":
        labels = ("", "late", "late|lost", "lost")
        several = [
            (f"it is {labels[i % 4].replace('|', ' and ') or 'fine'}, order {i}", labels[i % 4]) for i in range(40)
        ]
        return write_rows(path, ("text", "label"), several)
    return write_rows(path, ("text", "label"), ticket_rows(40))


def compared(folder: Path, kind: str, methods: str, seeds: int) -> Compared:
    """A comparison without a race on a file of that kind, in a folder of its own."""
    data, out, runs = file_for(kind, folder / "data.csv"), folder / "board", folder / "runs"
    flags = ["--kind", kind] if kind in ("regression", "multilabel") else []
    places = ["--out", str(out), "--runs", str(runs)]
    arguments = (str(data), *flags, *QUICK, "--exhaustive", "--methods", methods, "--seeds", str(seeds), *places)
    outcome = call("compare", *arguments)
    assert outcome.code == 0, outcome.err
    return Compared(arguments, out, runs, outcome)


@pytest.fixture(scope="session")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Compared]:
    """Kind -> a finished comparison, computed on first use; nobody changes it."""
    found: dict[str, Compared] = {}
    methods = {"classification": ("majority,tfidf_svm,linear_probe,top_layers:k=1", 3)}

    def board(kind: str) -> Compared:
        if kind not in found:
            found[kind] = compared(
                tmp_path_factory.mktemp(kind), kind, *methods.get(kind, ("majority,linear_probe", 1))
            )
        return found[kind]

    return board


@pytest.fixture(scope="session")
def two_modules(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder to copy, and method -> module in it: the majority class, and a linear probe that is in b.bank too."""
    folder, found = tmp_path_factory.mktemp("two_modules"), {}
    tickets = file_for("classification", folder / "tickets.csv")
    bank = ("--bank", "b.bank", "--backbone", "tiny_text")
    with contextlib.chdir(folder):
        for method, more in (("majority", ()), ("linear_probe", bank)):
            done = call("train", tickets, "--method", method, "--json", *more)
            assert done.code == 0, done.err
            found[method] = json.loads(done.out)["module"]
    return folder, found


@pytest.fixture(scope="session")
def kept_bank(tmp_path_factory: pytest.TempPathFactory, boards: Callable[[str], Compared]) -> Path:
    """A bank to copy: two versions of `tickets` and a task without a backbone."""
    folder, board = tmp_path_factory.mktemp("kept_bank"), boards("classification")
    with contextlib.chdir(folder):
        assert call("bank", "create", "shop.bank").code == 0
        for method in ("linear_probe", "top_layers:k=1"):
            done = call("bank", "add", "shop.bank", board.run_of(method), "--task", "tickets")
            assert done.code == 0, done.err
        assert call("bank", "add", "shop.bank", board.run_of("majority") / "module", "--task", "always").code == 0
    return folder / "shop.bank"


@pytest.fixture
def graft(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Outcome]:
    """`graft("compare", …)` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """`written("a.csv", header, rows)`: a CSV file in the folder of this test."""

    def write(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
        return write_rows(tmp_path / name, header, rows)

    return write


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    """Forty rows of three classes."""
    return file_for("classification", tmp_path / "tickets.csv")


@pytest.fixture
def keep_threads() -> Iterator[None]:
    """Puts torch's threads back."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
