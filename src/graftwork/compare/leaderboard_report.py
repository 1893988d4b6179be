"""The report of a board: one self-contained HTML page, for screen and print."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from graftwork.compare.advice import advice, chosen_row, heading
from graftwork.compare.majority_floor import floor_name
from graftwork.compare.mistakes_page import mistakes_section, write_beside
from graftwork.compare.plots import charts, shipped_chart
from graftwork.compare.sentences import (
    class_line,
    cost_name,
    few_runs,
    grades,
    points,
    price_tag,
    race_lines,
    scored,
    search_line,
    sentence,
    title_of,
    verdicts,
    warnings,
)
from graftwork.compare.shipped_lines import TITLES, apart_lines, shipped_cells
from graftwork.compare.written_report import NEW, examples_of, written_cells
from graftwork.io.files import finite, write_text
from graftwork.units import metric_title, percent, scaled, show

FOLDER = Path(__file__).parent
GRADES: Mapping[str, tuple[str, str]] = {
    "meter": ("A", "read off an instrument"),
    "counter": ("B", "counted while it ran"),
    "model": ("C", "computed from other readings"),
    "guess": ("D", "a guess, which may be wrong by a factor of two"),
}
PASSING = ("time", "load_average")  # keys of an environment that differ between runs
BOARD_COSTS = ("train_seconds", "trained_parameters", "stored_bytes", "peak_memory_bytes", "predict_latency_seconds")


def write_report(
    board: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    path: Path,
    mistakes: Mapping[str, Any] | None = None,
) -> None:
    """Write the page to `path` atomically, and the examples that it can't hold beside it. Raises `StorageError`."""
    beside = write_beside(mistakes, path.parent)
    write_text(path, render_report(board, runs, mistakes_section(mistakes, beside)))


def render_report(
    board: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], mistakes: Mapping[str, Any] | None = None
) -> str:
    """Return the page's HTML, with the section `mistakes`. All text from data is escaped, in the page and in plots."""
    board, runs = finite(board), finite(list(runs))
    return (
        pages()
        .get_template("report.html.j2")
        .render(
            board=board,
            title=str(board["task"].get("name", "task")),
            advice=advice(board),
            heading=heading(board),
            chosen=(chosen_row(board) or {}).get("method"),
            metric=title_of(board, board["headline_metric"]),
            other_metrics=[title_of(board, name) for name in _other_metrics(board)],
            class_line=class_line(board),
            floor_name=floor_name(board["task"]),
            rows=[_row(row, board) for row in board["rows"]],
            board_costs=[(name, cost_name(name)) for name in BOARD_COSTS],
            prices=_prices(board),
            grades=[(grade, *GRADES.get(grade, ("?", "unknown"))) for grade in grades(board["rows"])],
            search=search_line(board),
            race=race_lines(board),
            verdicts=verdicts(board),
            few=few_runs(board) is not None,
            pairs=[{"aso": None} | pair | {"sentence": sentence(pair)} for pair in board["differences"]],
            written=examples_of(board),
            written_cells=written_cells(board),
            written_new=NEW,
            mistakes=mistakes,
            warnings=warnings(board),
            data_report={key: value for key, value in board["data_report"].items() if key != "warnings"},
            runs=[_run(run, board["headline_metric"]) for run in runs],
            fits=_fits(board, runs),
            environments=_environments(runs),
            charts=charts(board, runs),
            shipped=shipped_cells(board),
            shipped_titles=TITLES,
            shipped_chart=shipped_chart(board),
            apart=apart_lines(board),
            has_scores=bool(scored(board)),
            css=css(),
        )
    )


def write_data_report(found: Mapping[str, Any], path: Path) -> None:
    """Write a data report as a page to `path` atomically. Raises `StorageError` if it can't be written."""
    found = finite(found)
    page = (
        pages()
        .get_template("data.html.j2")
        .render(
            title=str(found["task"]["name"]),
            kind=found["task"]["kind"],
            warnings=found["warnings"],
            report={key: value for key, value in found.items() if key not in ("warnings", "task")},
            css=css(),
        )
    )
    write_text(path, page)


@functools.cache
def pages(folder: Path = FOLDER) -> Environment:
    """Return the template environment, cached because compiling takes longer than rendering; it escapes all text."""
    made = Environment(
        loader=FileSystemLoader([folder, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"points": percent, "number": _number, "of_class": metric_title}
    made.tests |= {"leaf": _leaf, "flat": _flat, "grid": _grid}
    return made


def css() -> Markup:
    """Return the style sheet of all pages."""
    return Markup((FOLDER / "report.css").read_text(encoding="utf-8"))


def _other_metrics(board: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys(name for row in board["rows"] for name in row["scores"])
    return [name for name in names if name != board["headline_metric"]]


def _row(row: Mapping[str, Any], board: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table as text."""
    metric = board["headline_metric"]
    return {
        "method": row["method"],
        "status": _status(row),
        "n": _runs(row),
        "failed": bool(row.get("n_failed", 0) and row["n_seeds"]),
        "score": points(row, metric).partition(" [")[0],
        "interval": _interval(row, metric),
        "others": [(_mean(row, name), _interval(row, name)) for name in _other_metrics(board)],
        "costs": [_cell(row, name) for name in BOARD_COSTS],
        "frontier": row["method"] in board["frontier"],
        "below": row["below_majority"],
        "error": (row["errors"] or [""])[0].partition("\n")[0],
    }


def _runs(row: Mapping[str, Any]) -> str:
    """Return the number of successful runs, with the total if some failed."""
    failed = row.get("n_failed", 0)
    return f"{row['n_seeds']} of {row['n_seeds'] + failed}" if failed else str(row["n_seeds"])


def _status(row: Mapping[str, Any]) -> str:
    if row["status"] == "dropped":
        return f"dropped, validation {percent(row['dropped']['validation'])}"
    return str(row["status"]).replace("_", " ")


def _mean(row: Mapping[str, Any], metric: str) -> str:
    return percent(row["scores"][metric]["mean"]) if metric in row["scores"] else "–"


def _interval(row: Mapping[str, Any], metric: str) -> str:
    return "[" + points(row, metric).partition(" [")[2] if metric in row["scores"] else ""


def _cell(row: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return a cost as text, with the letter of its grade."""
    price = row["costs"].get(name)
    if price is None or price["value"] is None:
        return {"text": "–", "letter": "", "grade": ""}
    letter, meaning = GRADES.get(price["grade"], ("?", "unknown"))
    rate = price["unit"] == "per second"  # the row's title contains the unit
    text = scaled(price["value"], "") if rate else show(price["value"], price["unit"])
    return {"text": text, "letter": letter, "grade": f"{price['grade']}: {meaning}"}


def _prices(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every cost with its value for every row: the full price tags, a method per column."""
    rows = board["rows"]
    return [{"title": cost_name(name), "cells": [_cell(row, name) for row in rows]} for name in price_tag(rows)]


def _run(run: Mapping[str, Any], metric: str) -> dict[str, Any]:
    score, price = run["scores"].get(metric), run["costs"].get("train_seconds", {})
    chosen_on = run["validation"].get(metric)
    return {
        "id": run["id"],
        "method": run["method"],
        "seed": run["seed"],
        "status": run["status"],
        "steps": run["facts"].get("steps", "–"),
        "validation": "–" if chosen_on is None else percent(chosen_on),
        "score": "–" if score is None else percent(score),
        "train": show(price.get("value"), price.get("unit", "s")),
    }


def _fits(board: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the configuration of each method, and the facts of its first run."""
    fits = []
    for row in board["rows"]:
        first = next((run for run in runs if run["method"] == row["method"] and run["facts"]), {"facts": {}, "id": ""})
        fits.append({"method": row["method"], "config": row["config"], "facts": first["facts"], "run": first["id"]})
    return fits


def _environments(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the distinct environments of the runs, without values that differ between runs, such as the time."""
    different: list[Mapping[str, Any]] = []
    for run in runs:
        seen = {key: value for key, value in run["environment"].items() if key not in PASSING}
        if seen and seen not in different:
            different.append(seen)
    return different


def _leaf(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


def _flat(value: Any) -> bool:
    """Return whether the value is a dictionary of single values."""
    return isinstance(value, dict) and all(map(_leaf, value.values()))


def _grid(value: Any) -> bool:
    """Return whether the value holds several flat dictionaries with the same keys, shown as the columns of a table."""
    items = list(value.values()) if isinstance(value, dict) else []
    return len(items) > 1 and all(item and _flat(item) and item.keys() == items[0].keys() for item in items)


def _number(value: Any) -> str:
    """Format a value from a report or receipt, with thousands separators in numbers."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, dict | list):  # an empty one
        return "none"
    return str(value)
