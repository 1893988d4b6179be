"""The page of a learning curve: one self-contained HTML file in the style of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from graftwork.compare.chart import COLOURS, Axis, Series, draw
from graftwork.compare.curve_table import LEGEND, at_sizes, cells, header, saving_lines, title
from graftwork.compare.leaderboard_report import page
from graftwork.compare.page_table import PageTable, named
from graftwork.compare.sentences import search_line, title_of, warnings
from graftwork.units import percent, show

HEIGHT = 480
Curve = Mapping[str, Any]


def render_page(curve: Curve) -> str:
    """Return the page's HTML. All text from data is escaped, in the page and in the chart."""
    told = {
        "curve": curve,
        "title": str(curve["task"]["name"]),
        "about": title(curve).partition(" · ")[2],
        "legend": LEGEND,
        "scores": _table("Mean scores by training rows", curve, cells(curve)),
        "prices": _table("Training time by training rows", curve, at_sizes(curve, _training)),
        "savings": saving_lines(curve),
        "search": search_line(curve),
        "warnings": warnings(curve),
        "picture": curve_chart(curve),
    }
    return page("curve.html.j2", told)


def _table(label: str, curve: Curve, rows: Mapping[str, Sequence[str]]) -> PageTable:
    return named(label, ["method", *header(curve)], [[method, *row] for method, row in rows.items()])


def curve_chart(curve: Curve) -> Markup:
    """Return the headline scores (points) against training rows on a log axis: a line of means and the draws' dots.

    Methods that transfer have solid lines, the others dotted ones.
    """
    metric, methods = curve["headline_metric"], list(curve["methods"])
    series: list[Series] = []
    for number, one in enumerate(methods):
        points = [point for point in curve["points"] if point["method"] == one["method"] and metric in point["scores"]]
        nudge = 1.025 ** (number - (len(methods) - 1) / 2)  # horizontal offset, so that intervals do not overlap
        if points:
            series += _series(points, curve, COLOURS[number % len(COLOURS)], nudge, one["transfers"])
    rows = [size["rows"] for size in curve["sizes"]]
    ticks = [(size["rows"], f"{size['size']}\n{size['rows']:,.0f}") for size in curve["sizes"]]
    x = Axis("training rows", min(rows) / 1.3, max(rows) * 1.3, ticks, log=True)
    ends = [end for one in series for end in (*one.y, *(end for span in one.spans for end in span))] or [0.0, 100.0]
    pad = 0.04 * (max(ends) - min(ends)) or 1.0
    y = Axis(f"{title_of(curve, metric)}, points", min(ends) - pad, max(ends) + pad)
    return draw(series, x, y, HEIGHT, f"{title_of(curve, metric)} against training rows")


def _series(
    points: Sequence[Mapping[str, Any]], curve: Curve, colour: str, nudge: float, transfers: bool
) -> list[Series]:
    """Return two series of a method: the scores of its draws, and its means with intervals."""
    metric = curve["headline_metric"]
    name, scores, called = points[0]["method"], [point["scores"][metric] for point in points], title_of(curve, metric)
    dots = [(point, draw, run[metric]) for point in points for draw, run in point["by_draw"].items()]
    titles = [f"{name}, {point['size']}, draw {draw}\n{called} {percent(score)}" for point, draw, score in dots]
    return [
        Series(
            [nudge * point["rows"] for point, _, _ in dots],
            [100 * score for _, _, score in dots],
            titles,
            colour=colour,
            opacity=0.35,
        ),
        Series(
            [nudge * point["rows"] for point in points],
            [100 * score["mean"] for score in scores],
            [_title(point, metric, called) for point in points],
            name,
            colour,
            mark="diamond",
            line="solid" if transfers else "dotted",
            size=5,
            spans=[(100 * score["low"], 100 * score["high"]) for score in scores],
        ),
    ]


def _title(point: Mapping[str, Any], metric: str, called: str) -> str:
    score = point["scores"][metric]
    return (
        f"{point['method']}, {point['size']}, mean of {point['n_draws']}\n"
        f"{called} {percent(score['mean'])} [{percent(score['low'])}, {percent(score['high'])}]\n"
        f"training {_training(point)}"
    )


def _training(point: Mapping[str, Any]) -> str:
    """Return the median training time of a run."""
    cost = point["costs"].get("train_seconds", {"value": None, "unit": "s"})
    return show(cost["value"], cost["unit"])
