"""The committed boards: the README's table is theirs, and nothing in them tells where they were made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "benchmarks" / "first_board"
BOARDS = sorted((FOLDER / "results").glob("*/leaderboard.json"))


@pytest.fixture(scope="module")
def table(imported: Callable[[str], ModuleType]) -> ModuleType:
    return imported("first_board/table")


def test_the_readme_shows_the_committed_numbers(table: ModuleType) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert table.table() in readme


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.parent.name)
def test_a_board_is_whole_and_private(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    board = json.loads(text)
    assert board["format"] == 1 and board["rows"]
    assert all(row["status"] == "ok" and row["n_seeds"] == len(row["runs"]) for row in board["rows"])
    assert not re.search(r'["/ ](home|root|tmp|work|Users)/', text)
    assert board["environment"]["commit"]["hash"]
