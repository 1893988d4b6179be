"""The report of a board: one self-contained HTML page, for screen and print."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from graftwork.compare.advice import advice, chosen_row, heading
from graftwork.compare.mistakes_page import mistakes_section, write_beside
from graftwork.compare.plots import charts, shipped_chart
from graftwork.compare.report_tables import (
    board_table,
    grade_line,
    pair_table,
    price_table,
    run_table,
    ship_table,
    texts_table,
    unknown_prices,
    written_table,
)
from graftwork.compare.sentences import few_runs, scored, search_line, title_of, verdicts, warnings
from graftwork.compare.shipped_lines import apart_lines
from graftwork.compare.written_report import NEW, examples_of
from graftwork.io.files import finite, write_text
from graftwork.units import percent

FOLDER = Path(__file__).parent
PASSING = ("time", "load_average")  # keys of an environment that differ between runs
OPTION = re.compile(r"(--[a-z][\w-]*(?: [\d.]+\b)?)")
SECTION = re.compile(r'<h2 id="([\w-]+)">(.*?)</h2>', re.DOTALL)


def write_report(
    board: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    path: Path,
    mistakes: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> None:
    """Write the page to `path` atomically, and all examples to a file beside it if the page can't hold them.

    `command` is the shell command that predicts with the chosen method. Raises `StorageError`.
    """
    beside = write_beside(mistakes, path.parent)
    write_text(path, render_report(board, runs, mistakes_section(mistakes, beside), command))


def render_report(
    board: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    mistakes: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> str:
    """Return the page's HTML, with the section `mistakes` and the shell `command` that predicts with the chosen method.

    All text from data is escaped, in the page and in plots.
    """
    board, runs = finite(board), finite(list(runs))
    metric = title_of(board, board["headline_metric"])
    chosen = (chosen_row(board) or {}).get("method")
    return page(
        "report.html.j2",
        {
            "board": board,
            "title": str(board["task"].get("name", "task")),
            "advice": advice(board),
            "command": command,
            "heading": heading(board).partition(" · ")[2],
            "metric": metric,
            "notes": list(board.get("notes", [])),
            "errors": [
                f"{row['method']}: {row['errors'][0].partition(chr(10))[0]}" for row in board["rows"] if row["errors"]
            ],
            "scores": board_table(board, chosen),
            "charts": charts(board, runs) if scored(board) else None,
            "shipped": ship_table(board),
            "shipped_chart": shipped_chart(board),
            "apart": apart_lines(board),
            "few": few_runs(board) is not None,
            "failing": any(row.get("n_failed") and row["n_seeds"] for row in board["rows"]),
            "verdicts": verdicts(board),
            "pairs": pair_table(board["differences"]),
            "mistakes": mistakes,
            "written": written_table(board),
            "written_new": NEW,
            "texts": [
                (row["method"], part, texts_table(row[part], metric))
                for row in examples_of(board)
                for part in ("worst", "median")
            ],
            "prices": price_table(board),
            "unknown": unknown_prices(board),
            "grades": grade_line(board),
            "search": search_line(board),
            "warnings": warnings(board),
            "data_report": {key: value for key, value in board["data_report"].items() if key != "warnings"},
            "fits": _fits(board, runs),
            "environments": _environments(runs),
            "runs": run_table(runs, board["headline_metric"], metric),
        },
    )


def write_data_report(found: Mapping[str, Any], path: Path) -> None:
    """Write a data report as a page to `path` atomically. Raises `StorageError` if it can't be written."""
    found = finite(found)
    content = {
        "title": str(found["task"]["name"]),
        "kind": found["task"]["kind"],
        "warnings": found["warnings"],
        "report": {key: value for key, value in found.items() if key not in ("warnings", "task")},
    }
    write_text(path, page("data.html.j2", content))


def page(template: str, content: Mapping[str, Any], folder: Path = FOLDER) -> str:
    """Return a page as HTML: a template of `folder` with its content, in the style of all pages."""
    style, script = (
        Markup("".join((FOLDER / name).read_text(encoding="utf-8") for name in (f"colours.{sort}", f"report.{sort}")))
        for sort in ("css", "js")
    )
    return _pages(folder).get_template(template).render(content, css=style, script=script)


@functools.cache
def _pages(folder: Path = FOLDER) -> Environment:
    """Return the template environment, cached because compiling takes longer than rendering; it escapes all text."""
    made = Environment(
        loader=FileSystemLoader([folder, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"points": percent, "number": _number, "sections": _sections, "options": _options}
    made.tests |= {"leaf": _leaf, "flat": _flat, "grid": _grid}
    parts = made.get_template("parts.html.j2").module
    made.globals |= {name: getattr(parts, name) for name in ("table", "meanings", "chart", "frontier", "tree")}
    return made


def _options(line: str) -> Markup:
    """Return a line with its command-line options as code, so that no line break divides them."""
    return Markup(OPTION.sub(r"<code>\1</code>", str(escape(line))))


def _sections(content: str) -> list[tuple[str, Markup]]:
    """Return the id and the title of each heading of the second level, for the table of contents."""
    return [(name, Markup(title)) for name, title in SECTION.findall(content)]


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
