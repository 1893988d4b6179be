"""A learning curve as plain text, the same in a terminal, a file and the report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rich.console import Console

from graftwork.compare.plain_table import WIDTH, print_lines, side_by_side, titled_list, width_of
from graftwork.compare.savings import sentence
from graftwork.compare.sentences import search_line, title_of
from graftwork.units import percent, several

Curve = Mapping[str, Any]
Point = Mapping[str, Any]  # a method at a size


def print_curve(curve: Curve, console: Console) -> None:
    """Print the table, the savings from transfer, the price of the search, and the notes."""
    width = width_of(console)
    lines = [*textwrap.wrap(title(curve), width), "", *table_lines(curve, width), "", *textwrap.wrap(LEGEND, width)]
    spent = search_line(curve)
    for heading, items in (
        ("What transfer saves in labels", saving_lines(curve)),
        ("Price of the search", [spent] if spent else []),
        ("Notes", list(curve["notes"])),
    ):
        lines += titled_list(heading, items, width)
    print_lines(lines, console)


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
    """Return method -> a text for each size: `told` of its point there, or a dash if the method was not run there."""
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
    rows = cells(curve)
    at_each = zip(header(curve), *rows.values(), strict=True)
    return [line for block in side_by_side([["method", *rows], *at_each], width) for line in ("", *block)][1:]


def saving_lines(curve: Curve) -> list[str]:
    """Return a sentence for each saving."""
    return [sentence(one, title_of(curve, curve["headline_metric"])) for one in curve["savings"]]
