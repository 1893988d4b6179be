"""A stored board in the report's sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.compare.advice import advice
from graftwork.compare.sentences import verdicts
from graftwork.serve.info_routes import in_words

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BOARDS = sorted(BENCHMARKS.glob("*/results/*/leaderboard.json"))


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.parent.name)
def test_every_board_of_ours_has_words(path: Path) -> None:
    board = json.loads(path.read_text())
    said = in_words(board)
    assert said["answer"] == " ".join(advice(board)) and said["verdicts"] == verdicts(board)
    assert all(isinstance(line, str) for name in ("verdicts", "warnings") for line in said[name])


@pytest.mark.parametrize("board", [{}, {"rows": []}, {"rows": [{}], "headline_metric": "accuracy"}, {"rows": None}])
def test_what_is_no_board_has_none(board: Any) -> None:
    assert in_words(board) == {}
