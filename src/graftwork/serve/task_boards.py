"""What a task's leaderboard means, in the sentences of the report."""

from __future__ import annotations

from typing import Any

from graftwork.compare.advice import advice
from graftwork.compare.sentences import Board, race_lines, search_line, verdicts, warnings


def in_words(board: Board) -> dict[str, Any]:
    """Of a board: the answer, the verdicts, the race, what was found in the data, and the price of the search.

    Empty for a board that is not one of ours, or is damaged: the rows are shown all the same.
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
