"""The compressed modules of a board in words: which one to ship, and a table of them beside their originals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from graftwork.compare.plain_table import table
from graftwork.compare.sentences import Board, cost, points, title_of
from graftwork.units import percent, show

Row = Mapping[str, Any]
TITLES = ("module", "per second", "one answer", "bytes", "validation", "loss, at most", "on test")


def ship_lines(board: Board) -> list[str]:
    """Return a line on which module to ship; none for a board that compressed nothing."""
    found = board.get("shipped")
    if not found:
        return []
    rows = {row["method"]: row for row in found["rows"]}
    if found["chosen"] in rows:
        return [_ship(rows[found["chosen"]], board)]
    chosen = (board.get("decision") or {}).get("chosen")
    faster = [row for row in found["rows"] if row["of"] == chosen and row["speed_ratio"] > 1]
    if chosen is None or not faster:
        return [f"Ship {chosen} as it is: no rung makes its predictions faster."] if chosen else []
    best = max(faster, key=lambda row: float(row["speed_ratio"]))
    start = f"Ship {chosen} as it is: {best['method']} is {best['speed_ratio']:.1f} times as fast per prediction"
    if best["shown"]:
        return [f"{start}, which is no more than timing varies by."]
    return [
        f"{start}, but may lose {percent(best['loss_at_most'])} points; {percent(found['worth'])} are allowed"
        f"{_needed(found)}."
    ]


def _ship(row: Row, board: Board) -> str:
    """Return `Ship full > merge > int8: 2.1 times as fast per prediction, 23.4 MB with its network, …`"""
    lost = "no answer changes" if row["exact"] else f"at most {percent(row['loss_at_most'])} points lost"
    score = points(row, board["headline_metric"])
    return (
        f"Ship {row['method']}: {row['speed_ratio']:.1f} times as fast per prediction, {show(row['bytes'], 'bytes')} "
        f"with its network, {lost}; {title_of(board, board['headline_metric'])} {score} on test."
    )


def _needed(found: Mapping[str, Any]) -> str:
    needed, rows = found["rows_needed"], found["validation_rows"]
    if needed is None or needed <= rows:
        return ""
    return f", which {rows:,} rows of validation can't show: {needed:,} are needed"


def shipped_cells(board: Board) -> list[tuple[str, ...]]:
    """Return a row of cells for each original and each module made of it, titled by `TITLES`."""
    found, metric = board.get("shipped"), board["headline_metric"]
    if not found:
        return []
    methods = {row["method"]: row for row in board["rows"]}
    cells = []
    for original in found["originals"]:
        own = methods[original["method"]]
        cells.append(_cells(own, metric, original["bytes"], original["validation"], "–"))
        for row in (row for row in found["rows"] if row["of"] == original["method"]):
            loss = "none" if row["exact"] else f"{percent(row['loss'])}, {percent(row['loss_at_most'])}"
            cells.append(_cells(row, metric, row["bytes"], row["validation"], loss))
    return cells


def _cells(row: Row, metric: str, size: int, validation: float, loss: str) -> tuple[str, ...]:
    speed = cost(row, "predict_per_second").removesuffix(" per second")
    latency = cost(row, "predict_latency_seconds")
    return row["method"], speed, latency, show(size, "bytes"), percent(validation), loss, points(row, metric)


def shipped_table(board: Board, width: int) -> list[str]:
    """Return the table and `apart_lines`, wrapped to `width`; nothing for a board without `shipped`."""
    cells = shipped_cells(board)
    lines = ["", *table([list(column) for column in zip(TITLES, *cells, strict=True)])] if cells else []
    apart = apart_lines(board)
    return [
        *lines,
        *([] if lines or not apart else [""]),
        *(part for line in apart for part in textwrap.wrap(line, width)),
    ]


def apart_lines(board: Board) -> list[str]:
    """Return a line per module on the rungs that were not kept, and a line per method that was not compressed."""
    found = board.get("shipped") or {"originals": (), "left_out": ()}
    told = []
    for original in found["originals"]:
        vain = [_vain(one) for one in original["tried"] if not one["kept"]]
        if vain:
            told.append(f"Tried on {original['method']} and not kept: {', '.join(vain)}.")
    return [*told, *(f"{name} was not compressed: {reason}." for name, reason in found["left_out"])]


def _vain(one: Row) -> str:
    speed = one.get("speed_ratio")
    return f"{one['rung']} ({one['verdict']}{'' if speed is None else f', {speed:.2f} times as fast'})"
