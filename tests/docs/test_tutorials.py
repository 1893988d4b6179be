"""Each tutorial is carried out as it stands, from the first line to the last, with fewer epochs, seeds and steps."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from docs.blocks import CHECKOUT
from docs.reader import Reader

pytestmark = pytest.mark.slow
TUTORIALS = CHECKOUT / "docs" / "tutorials"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_first_decision(empty_folder: Path) -> None:
    reader = Reader("ID", told_by="compare")
    reader.carry_out(TUTORIALS / "first-decision.md")
    with open("new.csv", newline="", encoding="utf-8") as stream:
        assert [len(row) for row in csv.reader(stream)] == [2] * 7
    assert "accuracy" in reader.said and (empty_folder / "boards" / "tickets" / "report.html").exists()


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl or openssl is missing")
def test_many_tasks(empty_folder: Path) -> None:
    reader = Reader()
    try:
        reader.carry_out(TUTORIALS / "many-tasks.md")
    finally:
        code = reader.end()
    assert code == 0
    assert '"tickets"' in reader.said and '"urgency"' in reader.said and '"same_question"' not in reader.said


def test_pre_training(empty_folder: Path) -> None:
    reader = Reader("ID", "ID2")
    reader.carry_out(TUTORIALS / "pretrain.md")
    assert (empty_folder / "boards" / "fresh" / "leaderboard.json").exists() and "ID2" in reader.known


def test_the_lab_sheet(empty_folder: Path) -> None:
    """Its students have written `notes.txt` by the tutorial on pre-training."""
    notes = (TUTORIALS / "pretrain.md").read_text(encoding="utf-8").partition("## 2.")[0]
    (empty_folder / "before.md").write_text(notes, encoding="utf-8")
    reader = Reader("VECTORS", "ELMO", "LM", "LM2")
    reader.carry_out(empty_folder / "before.md")
    reader.carry_out(TUTORIALS / "lab.md")
    assert not reader.waiting
    assert {path.name for path in (empty_folder / "boards").iterdir()} == {"vectors", "elmo", "ulmfit", "bert"}
