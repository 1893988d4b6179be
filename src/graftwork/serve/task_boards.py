"""A task's leaderboard in the sentences of the report."""

from __future__ import annotations

from typing import Any

from graftwork.compare.advice import advice
from graftwork.compare.sentences import Board, race_lines, search_line, verdicts, warnings


def in_words(board: Board) -> dict[str, Any]:
    """Return a board's advice, verdicts, race, data warnings and price of the search, as text.

    Empty for a foreign or damaged board, whose rows are still shown.
    """
    try:
        return {
            "answer": " ".join(advice(board)),
            "verdicts": verdicts(board),
            "race": race_lines(board),
            "warnings": warnings(board),
            "search": search_line(board),
        }
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration):
        return {}
