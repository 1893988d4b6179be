"""The committed boards of images and sounds: whole, private, and as good as their README says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "images_and_sound"
BOARDS = sorted((FOLDER / "results").glob("*/leaderboard.json"))


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.parent.name)
def test_a_board_is_whole_and_private(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    board = json.loads(text)
    assert board["format"] == 1 and board["rows"]
    assert all(row["status"] == "ok" and row["n_seeds"] == len(row["runs"]) for row in board["rows"])
    assert not re.search(r'["/ ](home|root|tmp|work|Users)/', text)
    assert board["environment"]["commit"]["hash"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.parent.name)
def test_the_readme_shows_the_committed_scores(path: Path) -> None:
    board, readme = json.loads(path.read_text(encoding="utf-8")), (FOLDER / "README.md").read_text(encoding="utf-8")
    for row in board["rows"]:
        score = row["scores"]["accuracy"]
        spread = f" ± {100 * score['sd']:.1f}" if row["n_seeds"] > 1 else ""
        assert f"| {path.parent.name} | `{row['method']}` | {100 * score['mean']:.1f}{spread} |" in readme
