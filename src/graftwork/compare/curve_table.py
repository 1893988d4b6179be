"""A learning curve as plain text, the same in a terminal, a file and the report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from graftwork.compare.savings import sentence
from graftwork.compare.sentences import search_line, title_of
from graftwork.errors import printable
from graftwork.units import percent, several

WIDTH = 100
Curve = Mapping[str, Any]
Point = Mapping[str, Any]  # a method at a size


def print_curve(curve: Curve, console: Console) -> None:
    """Print the table, the savings from transfer, the price of the search, and the notes."""
    width = min(WIDTH, console.width) if console.is_terminal else WIDTH
    lines = [*textwrap.wrap(title(curve), width), "", *table_lines(curve, width), "", *textwrap.wrap(LEGEND, width)]
    spent = search_line(curve)
    for heading, items in (
        ("What transfer saves in labels", saving_lines(curve)),
        ("Price of the search", [spent] if spent else []),
        ("Notes", list(curve["notes"])),
    ):
        if items:
            lines += ["", heading]
            lines += [
                part
                for item in items
                for part in textwrap.wrap(item, width, initial_indent="  ", subsequent_indent="    ")
            ]
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


LEGEND = (
    "Mean ± sd over draws, in points, on the whole test split. The rows of a draw at one size are among those at the "
    "next, unless a note tells otherwise."
)


def title(curve: Curve) -> str:
    """Return the task, the metric, the backbone and the number of draws as one line."""
    backbone = f" · backbone {curve['backbone']['id']}" if curve["backbone"] else ""
    draws = several(curve["draws"], "draw")
    return f"{curve['task']['name']} · {title_of(curve, curve['headline_metric'])}, points{backbone} · {draws} a size"


def header(curve: Curve) -> list[str]:
    """Return `8/class (48)` for each size."""
    return [f"{size['size']} ({size['rows']:,.0f})" for size in curve["sizes"]]


def at_sizes(curve: Curve, told: Callable[[Point], str]) -> dict[str, list[str]]:
    """Return method -> the text `told` of its point at each size, a dash if it was not tried."""
    points = {(point["method"], point["size"]): point for point in curve["points"]}
    sizes = [size["size"] for size in curve["sizes"]]
    return {
        method: [told(points[method, size]) if (method, size) in points else "–" for size in sizes]
        for method in (one["method"] for one in curve["methods"])
    }


def cells(curve: Curve) -> dict[str, list[str]]:
    """Return method -> `59.8 ± 3.2` at each size, or its status."""
    return at_sizes(curve, partial(_cell, curve["headline_metric"]))


def _cell(metric: str, point: Point) -> str:
    if metric not in point["scores"]:
        return "failed"
    score = point["scores"][metric]
    spread = f" ± {percent(score['sd'])}" if point["n_draws"] > 1 else ""
    return f"{percent(score['mean'])}{spread}{'*' * bool(point['n_failed'])}"


def table_lines(curve: Curve, width: int = WIDTH) -> list[str]:
    """Return a header, a rule and a line per method; too many sizes for `width` are split into several tables."""
    rows, columns = cells(curve), header(curve)
    first = max(len("method"), *map(len, rows))
    widths = [max(len(columns[at]), *(len(row[at]) for row in rows.values())) for at in range(len(columns))]
    lines: list[str] = []
    start = 0
    while start < len(columns):
        end, taken = start, first
        while end < len(columns) and (end == start or taken + 2 + widths[end] <= width):
            taken, end = taken + 2 + widths[end], end + 1
        lines += [""] * bool(lines) + _part(rows, columns, widths, first, range(start, end))
        start = end
    return lines


def _part(
    rows: Mapping[str, Sequence[str]], columns: Sequence[str], widths: Sequence[int], first: int, shown: range
) -> list[str]:
    listed = [("method", columns), *rows.items()]
    lines = [name.ljust(first) + "".join("  " + row[at].rjust(widths[at]) for at in shown) for name, row in listed]
    return [lines[0], "─" * len(lines[0]), *lines[1:]]


def saving_lines(curve: Curve) -> list[str]:
    """Return a sentence for each saving."""
    return [sentence(one, title_of(curve, curve["headline_metric"])) for one in curve["savings"]]
