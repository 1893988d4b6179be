"""The tables of a board's page: the board, its price tags, pairs of methods, what was written, and the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.compare.majority_floor import floor_name
from graftwork.compare.page_table import Cell, Heading, PageTable, meaning, named
from graftwork.compare.sentences import class_line, cost, cost_name, grades, points, price_tag, title_of
from graftwork.compare.shipped_lines import TITLES, shipped_cells
from graftwork.compare.written_report import written_cells
from graftwork.units import percent, show, with_prefix

Board = Mapping[str, Any]
Row = Mapping[str, Any]

GRADES: Mapping[str, tuple[str, str]] = {
    "meter": ("A", "read off an instrument"),
    "counter": ("B", "counted while it ran"),
    "model": ("C", "computed from other readings"),
    "guess": ("D", "a guess, which may be wrong by a factor of two"),
}
BOARD_COSTS = ("train_seconds", "predict_latency_seconds", "stored_bytes", "trained_parameters", "peak_memory_bytes")
DASH = Cell("–")


def board_table(board: Board, chosen: str | None) -> PageTable:
    """Return the board: a row per method with its scores and its main costs, the best score first."""
    metric = board["headline_metric"]
    others = list(dict.fromkeys(name for row in board["rows"] for name in row["scores"] if name != metric))
    headings = [
        Heading("method", "◆ no other method is both better and cheaper to train", number=False),
        Heading(title_of(board, metric), _score_hint(board, metric)),
        Heading("95 % interval", "Of the score, over seeds and examples", number=False),
        Heading("runs", "Runs that went through, of all where some failed"),
        *(Heading(title_of(board, name), _score_hint(board, name)) for name in others),
        *(Heading(cost_name(name), meaning(name)) for name in BOARD_COSTS),
    ]
    rows: list[list[Cell | str]] = [
        [
            _method(row, board, chosen),
            *_headline(row, metric),
            _runs(row),
            *(_mean(row, name) for name in others),
            *(cost_cell(row, name, letter=False) for name in BOARD_COSTS),
        ]
        for row in board["rows"]
    ]
    return PageTable("Scores and prices of the methods", headings, rows)


def _score_hint(board: Board, metric: str) -> str:
    told = "Points: the mean, ± the standard deviation over seeds. " if metric == board["headline_metric"] else ""
    return told + meaning(metric) + (f" {class_line(board)}." if metric == "f1" and class_line(board) else "")


def _method(row: Row, board: Board, chosen: str | None) -> Cell:
    name = row["method"]
    mark = " ◆" if name in board["frontier"] else ""
    below = f"below {floor_name(board['task'])}" if row["below_majority"] else ""
    look = "chosen" if name == chosen else "" if row["status"] == "ok" else "lost"
    return Cell(name + mark, note="use it" if name == chosen else below, look=look)


def _headline(row: Row, metric: str) -> tuple[Cell, Cell]:
    if metric not in row["scores"]:
        return Cell(status(row)), Cell("")
    score, _, interval = points(row, metric).partition(" [")
    return Cell(score, row["scores"][metric]["mean"]), Cell(f"[{interval}", look="interval")


def status(row: Row) -> str:
    """Return the status of a row without a score, as words."""
    return str(row["status"]).replace("_", " ")


def _runs(row: Row) -> str:
    """Return the number of successful runs, with the total if some failed."""
    failed = row.get("n_failed", 0)
    return f"{row['n_seeds']} of {row['n_seeds'] + failed}" if failed else str(row["n_seeds"])


def _mean(row: Row, metric: str) -> Cell:
    if metric not in row["scores"]:
        return DASH
    interval = points(row, metric).partition(" [")[2]
    return Cell(percent(row["scores"][metric]["mean"]), hint=f"95 % interval [{interval}")


def cost_cell(row: Row, name: str, letter: bool = True) -> Cell:
    """Return the cell of a cost with its grade: as a letter after the value or, without `letter`, as a tooltip."""
    price = row["costs"].get(name)
    if price is None or price["value"] is None:
        return DASH
    sign, told = GRADES.get(price["grade"], ("?", "unknown"))
    rate = price["unit"] == "per second"  # the heading contains the unit
    text = with_prefix(price["value"], "") if rate else show(price["value"], price["unit"])
    return Cell(text, price["value"], "" if letter else f"{price['grade']}: {told}", sign if letter else "")


def price_table(board: Board) -> PageTable:
    """Return the price tags: a row per method, and a column for each cost with a known value."""
    rows = board["rows"]
    known = [
        name
        for name in price_tag(rows)
        if any(row["costs"].get(name, {}).get("value") is not None for row in rows)
    ]  # fmt: skip
    headings = [Heading("of one run, median", number=False), *(Heading(cost_name(one), meaning(one)) for one in known)]
    cells = [[row["method"], *(cost_cell(row, name) for name in known)] for row in rows]
    return PageTable("Price tags of the methods", headings, cells)


def unknown_prices(board: Board) -> str:
    """Return the names of the costs without a known value for any method, joined by commas."""
    rows = board["rows"]
    names = [
        name for name in price_tag(rows) if all(row["costs"].get(name, {}).get("value") is None for row in rows)
    ]  # fmt: skip
    return ", ".join(map(cost_name, names))


def grade_line(board: Board) -> str:
    """Return `A meter: read off an instrument; B …` for the grades on the board."""
    told = [(grade, *GRADES.get(grade, ("?", "unknown"))) for grade in grades(board["rows"])]
    return "; ".join(f"{letter} {grade}: {words}" for grade, letter, words in told)


def pair_table(pairs: Sequence[Mapping[str, Any]]) -> PageTable:
    """Return the table of all pairs of methods, from the `differences` of a board."""
    headings = [
        Heading("method", number=False),
        Heading("is", number=False),
        Heading("than", number=False),
        Heading("by, points"),
        Heading("95 % interval", number=False),
        Heading("p, corrected", "Two-sided, by Holm for all pairs"),
        Heading("share of draws won", "Bootstrap draws in which the first is ahead, in %"),
        Heading("detectable", "The smallest difference that such runs show in 80 of 100 cases, in points"),
        Heading("ε min", "Almost stochastic order: a second opinion; below 0.5 the one with the higher mean is better"),
    ]
    rows = [
        [
            pair["a"],
            Cell(pair["verdict"], look="" if pair["verdict"] == "cannot tell" else "verdict"),
            pair["b"],
            percent(pair["delta"]),
            Cell(f"[{percent(pair['low'])}, {percent(pair['high'])}]", look="interval"),
            p_value(pair["p_holm"]),
            percent(pair["p_a_better"]),
            "–" if pair["smallest_detectable"] is None else percent(pair["smallest_detectable"]),
            f"{pair['aso']['epsilon_min']:.2f}" if pair.get("aso") else "–",
        ]
        for pair in pairs
    ]
    return PageTable("All pairs of methods", headings, rows)


def p_value(p: float | None) -> Cell:
    """Return a p-value with three digits."""
    return DASH if p is None else Cell("< 0.001" if p < 0.001 else f"{p:.3f}", p)


def ship_table(board: Board) -> PageTable | None:
    """Return the table of the original modules and the compressed ones; None for a board that compressed nothing."""
    cells = shipped_cells(board)
    if not cells:
        return None
    chosen = board["shipped"]["chosen"]
    rows = [
        [Cell(name, note="ship it", look="chosen") if name == chosen else name, *rest] for name, *rest in cells
    ]  # fmt: skip
    return named("Modules and what was made of them", TITLES, rows)


def written_table(board: Board) -> PageTable | None:
    """Return the table of faults in generated texts that no metric sees; None for a task without generated texts."""
    cells = written_cells(board)
    titles = (
        "method",
        "new word triples, %",
        "new numbers, %",
        "texts with a triple twice",
        "empty texts",
        "texts cut",
    )
    return named("What was written", titles, cells) if cells else None


def texts_table(items: Sequence[Mapping[str, Any]], metric: str) -> PageTable:
    """Return the table of some texts that a method wrote, with their sources and references."""
    headings = [Heading(title, number=title == metric) for title in ("row", metric, "source", "reference", "written")]
    rows = [
        [item["id"], percent(item["score"]), item["source"] or "–", "\n".join(item["references"]), item["text"] or "–"]
        for item in items
    ]
    return PageTable("Texts that were written", headings, rows)


def run_table(runs: Sequence[Mapping[str, Any]], metric: str, title: str) -> PageTable:
    """Return the table of all runs; `title` is the heading of the metric's column."""
    titles = ("run", "method", "status", "seed", "steps", "validation", title, "train time")
    rows = [
        [
            Cell(run["id"], look="id"),
            run["method"],
            run["status"].replace("_", " "),
            str(run["seed"]),
            str(run["facts"].get("steps", "–")),
            *("–" if one.get(metric) is None else percent(one[metric]) for one in (run["validation"], run["scores"])),
            Cell(cost(run, "train_seconds"), run["costs"].get("train_seconds", {}).get("value")),
        ]
        for run in runs
    ]
    return named("All runs", titles, rows, texts=3)
