"""`graft shift`: a module or a task of a bank, a file without labels, lines and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.cli.main import main

Graft = Callable[..., Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bank with a task, and new texts of another sort without labels; beside them the folder of runs."""
    folder = tmp_path_factory.mktemp("shift")
    words = ("parcel", "invoice", "password")
    rows = [f"my {words[i % 3]} number {i} of {i * 7 % 11}\t{words[i % 3]}" for i in range(150)]
    (folder / "tickets.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    new = [f"the film {i} was long and its actor {i * 3 % 17} slept" for i in range(60)]
    (folder / "new.tsv").write_text("review\n" + "\n".join(new) + "\n", encoding="utf-8")
    words: list[object] = [
        "--method",
        "linear_probe",
        "--backbone",
        "tiny_text",
        "--bank",
        folder / "b.bank",
        "--runs",
        folder / "runs",
    ]
    assert main(["train", *map(str, (folder / "tickets.tsv", *words))]) == 0
    return folder / "b.bank", folder / "new.tsv"


@pytest.mark.slow
def test_a_module_and_a_task_of_a_bank(graft: Graft, files: tuple[Path, Path]) -> None:
    bank, new = files
    done = graft("shift", bank, "tickets", new, "--text", "review")
    assert done.code == 0, done.err
    assert done.out.startswith("These texts differ from those trained on")
    assert "new texts that differ most from the training data" in done.out and "the film" in done.out
    run = next(path for path in (bank.parent / "runs").iterdir() if (path / "module").is_dir())
    found, in_bank = (
        json.loads(graft("shift", *which, new, "--text", "review", "--json").out)
        for which in ((run,), (bank, "tickets"))
    )
    assert found == in_bank and found["two_sample"]["p"] < 0.05
    assert found["words"]["most_frequent"][0] == {"word": "actor", "count": 60}


@pytest.mark.slow
def test_mistakes_are_one_message(graft: Graft, files: tuple[Path, Path]) -> None:
    bank, new = files
    assert "graft shift BANK TASK FILE" in graft("shift", bank, new).err
    assert graft("shift", bank, "ticket", new).code == 2
    done = graft("shift", bank, "tickets", new)
    assert done.code == 2 and "no column 'text'" in done.err
    assert graft("shift", bank, "tickets", new, "--text", "review", "--rows", "3").code == 2
    done = graft("shift", bank, "tickets", new, "--text", "review", "--furthest", "-1")
    assert done.code == 2 and "expected: 0 or more" in done.err
