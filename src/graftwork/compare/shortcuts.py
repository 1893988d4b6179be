"""Shortcuts in pair data: a board's evidence that one text of a pair suffices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.compare.majority_floor import MAJORITY
from graftwork.compare.sentences import verdict
from graftwork.units import percent

PARTIAL = "partial_input"
Row = Mapping[str, Any]


def shortcuts(board: Mapping[str, Any]) -> list[str]:
    """Return a sentence for every row that sees one text of each pair and is shown to be better than the majority.

    The row is compared with the best method that sees both texts, then with its own method on both.
    """
    scored = [row for row in board["rows"] if board["headline_metric"] in row["scores"]]
    whole = {row["method"]: row for row in scored if row["config"].get("name") != PARTIAL}
    told = []
    for row in scored:
        if row["config"].get("name") == PARTIAL and verdict(board, row["method"], MAJORITY) == "better":
            told.append(_sentence(board, row, whole))
    return told


def _have_enough_runs(board: Mapping[str, Any], a: str, b: str) -> bool:
    """Return whether both methods have enough runs for a verdict."""
    return any({pair["a"], pair["b"]} == {a, b} and pair["p"] is not None for pair in board["differences"])


def _sentence(board: Mapping[str, Any], row: Row, whole: Mapping[str, Row]) -> str:
    metric, name, by = board["headline_metric"], row["method"], row["config"]["by"]
    start = f"{name} sees the {row['config']['side']} text of each pair alone and"
    best = next(iter(whole))
    for rival in dict.fromkeys((best, by)):
        if not _have_enough_runs(board, name, rival):
            continue  # too few runs for a verdict on the two
        found = verdict(board, name, rival) if rival in whole and rival != MAJORITY else None
        if found == "cannot tell" and rival == best and any(verdict(board, one, name) == "better" for one in whole):
            continue  # the best varies too much, but another method that sees both texts is shown to be better
        if found in ("better", "cannot tell"):
            which = "the best that sees both" if rival == best else "which sees both"
            beside = (
                f"{percent(row['scores'][metric]['mean'])} against {percent(whole[rival]['scores'][metric]['mean'])}"
            )
            said = "is better than" if found == "better" else "is within the noise of"
            return f"The data has a shortcut: {start} {said} {rival}, {which} ({beside})."
    pair = next(pair for pair in board["differences"] if {pair["a"], pair["b"]} == {name, MAJORITY})
    gained = percent(abs(pair["delta"]))
    return f"{start} is better than {MAJORITY} by {gained}: that much of a score does not need the other text."
