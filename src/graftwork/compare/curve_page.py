"""The page of a learning curve: one self-contained HTML file in the style of the report."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.compare.curve_table import LEGEND, at_sizes, cells, header, saving_lines, title
from graftwork.compare.leaderboard_report import css, pages, plotly, write_page
from graftwork.compare.plots import plain_layout
from graftwork.compare.sentences import search_line, warnings
from graftwork.units import percent, show

HEIGHT = 480
COLOURS = ("#0b5cad", "#c2571a", "#2f7d4f", "#7b4fa3", "#a3324a", "#5c6b7a", "#b08900", "#1f8a99")
Curve = Mapping[str, Any]
Json = dict[str, Any]


def write_curve_page(curve: Curve, path: Path) -> None:
    """Write the page to `path` atomically. Raises `StorageError` if it can't be written."""
    write_page(path, lambda: render_page(curve))


def render_page(curve: Curve) -> str:
    """Return the page's HTML. All text from data is escaped, in the page and in the plot."""
    return (
        pages()
        .get_template("curve.html.j2")
        .render(
            curve=curve,
            title=str(curve["task"]["name"]),
            about=title(curve),
            legend=LEGEND,
            header=header(curve),
            rows=cells(curve),
            prices=at_sizes(curve, _training),
            savings=saving_lines(curve),
            search=search_line(curve),
            warnings=warnings(curve),
            figure=figure(curve),
            css=css(),
            plotly=plotly(),
        )
    )


def figure(curve: Curve) -> Json:
    """Return the plot of headline scores (points) against training rows on a log axis: for each method a line of means
    and a dot per draw.

    Methods that transfer have solid lines, the others dotted ones.
    """
    methods = list(curve["methods"])
    data: list[Json] = []
    for number, one in enumerate(methods):
        points = [
            point
            for point in curve["points"]
            if point["method"] == one["method"] and curve["headline_metric"] in point["scores"]
        ]
        nudge = 1.025 ** (number - (len(methods) - 1) / 2)  # horizontal offset, so that intervals do not overlap
        data += _traces(points, curve["headline_metric"], COLOURS[number % len(COLOURS)], nudge, one["transfers"])
    layout = plain_layout(HEIGHT)
    ticks = [size["rows"] for size in curve["sizes"]]
    layout["xaxis"] |= {"type": "log", "title": {"text": "training rows"}, "tickvals": ticks, "ticktext": [
        f"{html.escape(size['size'])}<br>{size['rows']:,.0f}" for size in curve["sizes"]]}  # fmt: skip
    layout["yaxis"] |= {"title": {"text": f"{html.escape(curve['headline_metric'])}, points"}}
    layout |= {"showlegend": True, "legend": {"orientation": "h", "y": -0.22, "x": 0}}
    return {"data": data, "layout": layout}


def _traces(points: Sequence[Mapping[str, Any]], metric: str, colour: str, nudge: float, transfers: bool) -> list[Json]:
    """Return the traces of a method: its draws, and the means with their intervals."""
    if not points:
        return []
    name, scores = html.escape(points[0]["method"]), [point["scores"][metric] for point in points]
    dots = [(point, draw, run[metric]) for point in points for draw, run in point["by_draw"].items()]
    return [
        {
            "type": "scatter", "mode": "markers", "legendgroup": name, "showlegend": False,
            "marker": {"size": 5, "color": colour, "opacity": 0.35},
            "x": [nudge * point["rows"] for point, _, _ in dots], "y": [100 * score for _, _, score in dots],
            "text": [f"<b>{name}</b>, {html.escape(point['size'])}, draw {draw}<br>{html.escape(metric)} "
                     f"{percent(score)}" for point, draw, score in dots],
            "hovertemplate": "%{text}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines+markers", "name": name, "legendgroup": name,
            "x": [nudge * point["rows"] for point in points], "y": [100 * score["mean"] for score in scores],
            "line": {"color": colour, "width": 2, "dash": "solid" if transfers else "dot"},
            "marker": {"symbol": "diamond", "size": 9, "color": colour},
            "error_y": {
                "type": "data", "symmetric": False, "thickness": 1, "width": 3, "color": colour,
                "array": [100 * (score["high"] - score["mean"]) for score in scores],
                "arrayminus": [100 * (score["mean"] - score["low"]) for score in scores],
            },
            "text": [_hover(point, metric) for point in points],
            "hovertemplate": "%{text}<extra></extra>",
        },
    ]  # fmt: skip


def _hover(point: Mapping[str, Any], metric: str) -> str:
    score = point["scores"][metric]
    return (
        f"<b>{html.escape(point['method'])}</b>, {html.escape(point['size'])}, mean of {point['n_draws']}<br>"
        f"{html.escape(metric)} {percent(score['mean'])} [{percent(score['low'])}, {percent(score['high'])}]<br>"
        f"training {_training(point)}"
    )


def _training(point: Mapping[str, Any]) -> str:
    """Return the median training time of a run."""
    cost = point["costs"].get("train_seconds", {"value": None, "unit": "s"})
    return show(cost["value"], cost["unit"])
