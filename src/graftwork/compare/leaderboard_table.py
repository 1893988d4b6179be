"""The leaderboard as plain text: at most 100 columns, without colours, the same in a terminal and a file."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from graftwork.compare.advice import advice, chosen_row, heading
from graftwork.compare.majority_floor import floor_name
from graftwork.compare.plain_table import GAP, WIDTH, print_lines, table, titled_list, width_of
from graftwork.compare.sentences import class_line, cost, few_runs, points, search_line, title_of, verdicts, warnings
from graftwork.compare.shipped_lines import shipped_table
from graftwork.compare.written_report import written_lines
from graftwork.units import ERROR_RATES, percent

FAILED = "Not finished"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table; if the table is too wide, columns with the highest `importance` number are removed
    first."""

    title: str
    importance: int
    cell: Callable[[Row], str]
    left: bool = False  # aligned to the left


def print_table(board: Mapping[str, Any], console: Console, verbose: bool = False) -> None:
    """Print the advice and the table; with `verbose` also the verdicts, the price of the search, and the notes."""
    width = width_of(console)
    lines = [*textwrap.wrap(heading(board), width), ""]
    lines += [part for line in advice(board) for part in textwrap.wrap(line, width)]
    lines += ["", *table_lines(board, width), *shipped_table(board, width)]
    sections = [(title, items) for title, items in _sections(board) if items]
    for title, items in sections if verbose else [found for found in sections if found[0] == FAILED]:
        lines += titled_list(title, items, width)
    if not verbose:
        lines += ["", *textwrap.wrap(_more_line(sections), width)]
    print_lines(lines, console)


def _more_line(sections: Sequence[tuple[str, list[str]]]) -> str:
    """Return `With --verbose, and in the report: verdicts (7), notes (2), about the data (3).`"""
    counts = {title: len(items) for title, items in sections if title != FAILED}
    told = [f"{title[0].lower()}{title[1:]} ({count})" for title, count in counts.items()]
    return f"With --verbose, and in the report: {', '.join(told)}." if told else ""


def table_lines(board: Mapping[str, Any], width: int = WIDTH) -> list[str]:
    """Return a header, a rule, a line per row, and the legend of the marks, none longer than `width`."""
    columns, left_out = shown_columns(board, width)
    left = [at for at, (column, _) in enumerate(columns) if column.left or not at]
    return [*table([cells for _, cells in columns], left), *_legend(board, left_out, width)]


def shown_columns(board: Mapping[str, Any], width: int) -> tuple[list[tuple[Column, list[str]]], list[str]]:
    """Return the columns that fit into `width`, each with its title and a cell per row, and the titles left out."""
    columns = _columns(board)
    cells = {column: [column.title, *(column.cell(row) for row in board["rows"])] for column in columns}
    widths = {column: max(len(text) for text in texts) for column, texts in cells.items()}
    kept = list(columns)
    while sum(widths[column] + len(GAP) for column in kept) - len(GAP) > width and len(kept) > 2:
        kept.remove(max(kept, key=lambda column: column.importance))
    return [(column, cells[column]) for column in kept], [one.title for one in columns if one not in kept]


def _columns(board: Mapping[str, Any]) -> list[Column]:
    """Return the columns from left to right, with their importances."""
    headline = board["headline_metric"]
    others = dict.fromkeys(name for row in board["rows"] for name in row["scores"] if name != headline)
    columns = [
        Column("method", 0, lambda row: _marks(row, board) + str(row["method"])),
        Column(title_of(board, headline), 1, lambda row: _score(row, headline), left=True),
    ]
    if headline in ERROR_RATES:
        columns.append(Column(ERROR_RATES[headline], 1, _rate_cell(headline)))
    if any(row["n_failed"] and row["n_seeds"] for row in board["rows"]):
        columns.append(Column("runs", 1, _runs_cell))
    columns += [Column(title_of(board, name), 5 + 5 * at, _metric_cell(name)) for at, name in enumerate(others)]
    prices = (
        ("train", "train_seconds", 2), ("total", "total_seconds", 8), ("trained", "trained_parameters", 3),
        ("stored", "stored_bytes", 4), ("FLOPs", "train_flops", 9), ("memory", "peak_memory_bytes", 6),
        ("predict", "predict_latency_seconds", 7),
    )  # fmt: skip
    return columns + [Column(title, importance, _cost_cell(name)) for title, name, importance in prices]


def _score(row: Row, metric: str) -> str:
    """Return the score, with its parts aligned across rows, or the status of the row."""
    if metric not in row["scores"]:
        return str(row["status"]).replace("_", " ")
    score, _, interval = points(row, metric).partition(" [")
    return f"{score:<10} [{interval:>11}"


def _runs_cell(row: Row) -> str:
    """Return the successful runs of all runs: `4 of 5`."""
    return f"{row['n_seeds']} of {row['n_seeds'] + row['n_failed']}"


def _metric_cell(name: str) -> Callable[[Row], str]:
    return lambda row: percent(row["scores"][name]["mean"]) if name in row["scores"] else "–"


def _rate_cell(name: str) -> Callable[[Row], str]:
    return lambda row: percent(1 - row["scores"][name]["mean"]) if name in row["scores"] else "–"


def _cost_cell(name: str) -> Callable[[Row], str]:
    return lambda row: cost(row, name).replace(" FLOP", "").replace("FLOP", "")  # the column's title contains the unit


def _marks(row: Row, board: Mapping[str, Any]) -> str:
    if row is chosen_row(board):
        return "> "
    if row["below_majority"]:
        return "! "
    return "* " if row["method"] in board["frontier"] else "  "


def _legend(board: Mapping[str, Any], left_out: list[str], width: int) -> list[str]:
    parts = ["> use it (chosen on validation; the scores are on test)"] if chosen_row(board) else []
    if board["frontier"]:
        parts.append("* no other method is both better and cheaper to train")
    if any(row["below_majority"] for row in board["rows"]):
        parts.append(f"! below {floor_name(board['task'])}")
    parts.append("± sd over seeds, [95 % interval over seeds and examples]")
    parts += [told] if (told := class_line(board)) else []
    if left_out:
        parts.append(f"not shown for want of width: {', '.join(left_out)}")
    return textwrap.wrap("; ".join(parts), width)


def _sections(board: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    failed = [
        f"{row['method']}: {row['status'].replace('_', ' ')}"
        + "".join(f"; {error.splitlines()[0]}" for error in row["errors"][:1])
        for row in board["rows"]
        if row["status"] != "ok"
    ]
    spent = search_line(board)
    return [
        ("Verdicts" if few_runs(board) is None else "Verdicts (not enough runs)", verdicts(board)),
        (FAILED, failed),
        ("What was written", written_lines(board)),
        ("Price of the search", [spent] if spent else []),
        ("Notes", list(board.get("notes", []))),
        ("About the data", warnings(board)),
    ]
