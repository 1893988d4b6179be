"""Whether one text of a pair is enough: what the partial inputs of a board say of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.units import percent

PARTIAL, BLIND = "partial_input", "majority"
Row = Mapping[str, Any]


def shortcuts(board: Mapping[str, Any]) -> list[str]:
    """A sentence for every row that sees one text of each pair and is shown to be better than the majority.

    It is read against the best method that sees both texts, then against its own method on both.
    """
    scored = [row for row in board["rows"] if board["headline_metric"] in row["scores"]]
    whole = {row["method"]: row for row in scored if row["config"].get("name") != PARTIAL}
    told = []
    for row in scored:
        if row["config"].get("name") == PARTIAL and _verdict(board, row["method"], BLIND) == "better":
            told.append(_sentence(board, row, whole))
    return told


def _sentence(board: Mapping[str, Any], row: Row, whole: Mapping[str, Row]) -> str:
    metric, name, by = board["headline_metric"], row["method"], row["config"]["by"]
    start = f"{name} sees the {row['config']['side']} text of each pair alone and"
    for rival in dict.fromkeys((next(iter(whole)), by)):
        verdict = _verdict(board, name, rival) if rival in whole and rival != BLIND else "worse"
        if verdict != "worse":
            which = "the best that sees both" if rival == next(iter(whole)) else "which sees both"
            beside = (
                f"{percent(row['scores'][metric]['mean'])} against {percent(whole[rival]['scores'][metric]['mean'])}"
            )
            said = "is better than" if verdict == "better" else "is within the noise of"
            return f"The data has a shortcut: {start} {said} {rival}, {which} ({beside})."
    gain = row["scores"][metric]["mean"] - whole[BLIND]["scores"][metric]["mean"]
    return f"{start} is better than {BLIND} by {percent(gain)}: so much of a score here needs no pair."


def _verdict(board: Mapping[str, Any], a: str, b: str) -> str:
    """What the board says of `a` beside `b`."""
    for pair in board["differences"]:
        if (pair["a"], pair["b"]) == (a, b):
            return str(pair["verdict"])
        if (pair["a"], pair["b"]) == (b, a):
            return {"better": "worse", "worse": "better"}.get(pair["verdict"], str(pair["verdict"]))
    return "worse"
