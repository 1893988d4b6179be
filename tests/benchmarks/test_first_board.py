"""The committed boards: the table in the documentation is theirs, and nothing in them tells where they were made."""

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


def test_the_page_of_price_tags_shows_the_committed_numbers(table: ModuleType) -> None:
    page = (CHECKOUT / "docs" / "explanation" / "price-tags.md").read_text(encoding="utf-8")
    assert table.table() in page


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.parent.name)
def test_a_board_is_whole_and_private(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    board = json.loads(text)
    assert board["format"] == 1 and board["rows"]
    assert all(row["status"] == "ok" and row["n_seeds"] == len(row["runs"]) for row in board["rows"])
    assert not re.search(r'["/ ](home|root|tmp|work|Users)/', text)
    assert board["environment"]["commit"]["hash"]
