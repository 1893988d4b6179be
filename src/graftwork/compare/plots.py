"""The report's plots as plotly figures in plain JSON: score against cost, a dot per run, expected best of n tries."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.compare.frontier import frontier, points
from graftwork.compare.sentences import cost_name, price_tag
from graftwork.core.meter import meaning_of
from graftwork.units import percent, show

Board = Mapping[str, Any]
Run = Mapping[str, Any]
Json = dict[str, Any]

INK, ACCENT, QUIET, RULE = "#1f2933", "#0b5cad", "#7b8794", "#e4e7eb"
FRONTIER_PIXELS, BEST_PIXELS = 440, 340  # heights
_HUES = ("#0b5cad", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#be185d", "#0e7490", "#4d7c0f")
_PIXELS = (860.0, 380.0)  # approximate inner size of the frontier plot, for placing labels
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13, "color": INK}
# Plotly's text positions -> offset of the label's centre from its marker (in label widths, in lines).
_PLACES = {
    "top left": (-0.5, 0.8), "bottom right": (0.5, -0.8), "middle right": (0.5, 0.0), "middle left": (-0.5, 0.0),
    "top right": (0.5, 0.8), "bottom left": (-0.5, -0.8), "top center": (0.0, 1.2), "bottom center": (0.0, -1.2),
}  # fmt: skip


def figures(board: Board, runs: Sequence[Run]) -> Json:
    """Return everything that the page's script draws: a figure per cost, the dots, the expected best, and the two
    ranges of the score axis."""
    names = [name for name in price_tag(board["rows"]) if points(board["rows"], board["headline_metric"], name)]
    ranges = score_ranges(board, runs)
    return {
        "costs": [{"name": name, "title": cost_name(name)} for name in names],
        "frontier": {name: frontier_figure(board, runs, name, ranges["close"]) for name in names},
        "dots": dots_figure(board, runs, ranges["close"]),
        "best": best_figure(board),
        "heights": {"frontier": FRONTIER_PIXELS, "dots": _dots_height(board), "best": BEST_PIXELS},
        "ranges": ranges,
        "below": ", ".join(f"{name} ({percent(mean)})" for name, mean in _below(board, ranges["close"]).items()),
    }


def frontier_figure(board: Board, runs: Sequence[Run], cost: str, scores: Sequence[float]) -> Json:
    """Return the plot of headline score (points) against `cost` on a log axis: runs, means with intervals, and the
    frontier."""
    metric = board["headline_metric"]
    rows = {row["method"]: row for row in board["rows"]}
    means = points(board["rows"], metric, cost)
    done = [run for run in runs if _drawn(run, metric, cost)]
    values = [rows[point.name]["costs"][cost]["value"] for point in means]
    values += [run["costs"][cost]["value"] for run in done]
    unit = next((rows[point.name]["costs"][cost]["unit"] for point in means), "")
    floor = min((value for value in values if value > 0), default=1.0) / 3  # position of a cost of zero
    best = frontier(means)
    line = [rows[name] for name in best]
    if meaning_of(cost).more_is_better:
        line.reverse()
    axes = {
        reach: _price_axis(
            [rows[point.name]["costs"][cost]["value"] for point in means if 100 * point.score >= lowest]
            + [run["costs"][cost]["value"] for run in done if 100 * run["scores"][metric] >= lowest],
            floor,
        )
        for reach, lowest in (("close", scores[0]), ("full", -math.inf))
    }
    data = [
        _run_dots(done, metric, cost, floor),
        {
            "type": "scatter", "mode": "lines", "hoverinfo": "skip",
            "line": {"color": ACCENT, "width": 1.5, "shape": "hv"},
            "x": [max(row["costs"][cost]["value"], floor) for row in line],
            "y": [100 * row["scores"][metric]["mean"] for row in line],
        },
        _mean_marks([rows[point.name] for point in means], done, metric, cost, floor, best, axes["close"], scores),
    ]  # fmt: skip
    layout = plain_layout(FRONTIER_PIXELS)
    layout["xaxis"] |= {"type": "log", "title": {"text": cost_name(cost)}}
    layout["yaxis"] |= {"title": {"text": f"{html.escape(metric)}, points"}}
    return {
        "data": data, "layout": layout, "axes": {reach: _with_ticks(axis, unit) for reach, axis in axes.items()},
        "zero": any(value <= 0 for value in values),
    }  # fmt: skip


def _price_axis(values: Sequence[float], floor: float) -> list[float]:
    """Return the ends of the log axis, with room for labels."""
    span = [math.log10(max(value, floor)) for value in values] or [-1.0, 0.0]
    pad = 0.1 * max(max(span) - min(span), 0.5)
    return [min(span) - pad, max(span) + pad]


def _with_ticks(axis: Sequence[float], unit: str) -> Json:
    ticks = _ticks(10 ** axis[0], 10 ** axis[1], unit)
    return {"range": list(axis), "tickvals": ticks, "ticktext": [_tick(value, unit) for value in ticks]}


def dots_figure(board: Board, runs: Sequence[Run], scores: Sequence[float]) -> Json:
    """Return the plot of runs: a line per method, best on top, with a dot per run, the mean and its interval."""
    metric = board["headline_metric"]
    rows = [row for row in board["rows"] if metric in row["scores"]]
    height = {row["method"]: -at for at, row in enumerate(rows)}
    done = [run for run in runs if _drawn(run, metric, None) and run["method"] in height]
    means = [100 * row["scores"][metric]["mean"] for row in rows]
    data = [
        _interval_marks(rows, metric, means, height),
        {
            "type": "scatter", "mode": "markers", "hovertemplate": "%{text}<extra></extra>",
            "marker": {"size": 7, "color": QUIET, "opacity": 0.75},
            "x": [100 * run["scores"][metric] for run in done],
            "y": [height[run["method"]] + offset for run, offset in zip(done, _offsets(done), strict=True)],
            "text": [_hover(run, metric, None) for run in done],
        },
    ]  # fmt: skip
    layout = plain_layout(_dots_height(board))
    layout["xaxis"] |= {"title": {"text": f"{html.escape(metric)}, points"}}
    layout["yaxis"] |= {"tickvals": list(height.values()), "ticktext": [html.escape(name) for name in height]}
    layout["yaxis"] |= {"range": [0.6 - max(1, len(rows)), 0.6], "showgrid": False}
    below = _below(board, scores)
    notes = [
        {"xref": "paper", "x": 0.005, "xanchor": "left", "y": height[name], "showarrow": False,
         "text": f"◂ {percent(mean)}", "font": {"color": QUIET}}
        for name, mean in below.items()
    ]  # fmt: skip
    return {"data": data, "layout": layout, "notes": {"close": notes, "full": []}}


def best_figure(board: Board) -> Json | None:
    """Return the plot of the expected best validation score (points) of n tries against their cost, a line per row;
    None without curves."""
    curves = board.get("expected_best") or []
    if not curves:
        return None
    hues = {method: _HUES[at % len(_HUES)] for at, method in enumerate(dict.fromkeys(one["method"] for one in curves))}
    data = []
    for one in curves:
        name = html.escape(one["method"]) + ("" if one["of"] == "seeds" else f", {html.escape(one['of'])}")
        data.append({
            "type": "scatter", "mode": "lines+markers", "name": name,
            "line": {"color": hues[one["method"]], "dash": "solid" if one["of"] == "seeds" else "dot", "width": 1.5},
            "marker": {"size": 5},
            "x": [point["cost"] for point in one["points"]],
            "y": [100 * point["score"] for point in one["points"]],
            "text": [
                f"<b>{name}</b>, best of {point['n']}<br>{percent(point['score'])} for {show(point['cost'], 's')}"
                for point in one["points"]
            ],
            "hovertemplate": "%{text}<extra></extra>",
        })  # fmt: skip
    layout = plain_layout(BEST_PIXELS) | {"showlegend": True}
    prices = [point["cost"] for one in curves for point in one["points"]]
    axis = _with_ticks(_price_axis(prices, min((price for price in prices if price > 0), default=1.0)), "s")
    layout["xaxis"] |= {"type": "log", "title": {"text": f"{cost_name(curves[0]['cost'])} of all tries"}} | axis
    layout["yaxis"] |= {"title": {"text": f"{html.escape(board['headline_metric'])} on validation, points"}}
    return {"data": data, "layout": layout}


def _dots_height(board: Board) -> int:
    return 90 + 44 * max(1, sum(board["headline_metric"] in row["scores"] for row in board["rows"]))


def score_ranges(board: Board, runs: Sequence[Run]) -> dict[str, list[float]]:
    """Return the range of the score axis with every row ("full"), and without the rows far below the others ("close"),
    in points."""
    metric = board["headline_metric"]
    rows = [row for row in board["rows"] if metric in row["scores"]]
    spans = []
    for row in rows:
        own = [run["scores"][metric] for run in runs if run["method"] == row["method"] and _drawn(run, metric, None)]
        score = row["scores"][metric]
        spans.append((min([score["low"], score["mean"], *own]), max([score["high"], score["mean"], *own])))
    spans.sort(reverse=True)
    full = _padded(spans)
    while len(spans) > 3 and spans[0][1] - spans[-2][0] < (spans[0][1] - spans[-1][0]) / 2.5:
        spans.pop()
    return {"full": full, "close": _padded(spans)}


def _padded(spans: Sequence[tuple[float, float]]) -> list[float]:
    low, high = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=1.0)
    pad = 0.06 * (high - low) or 0.01
    return [100 * (low - pad), 100 * (high + pad)]


def _below(board: Board, scores: Sequence[float]) -> dict[str, float]:
    """Return the rows that the close range leaves out, with their means."""
    metric = board["headline_metric"]
    means = {row["method"]: row["scores"][metric]["mean"] for row in board["rows"] if metric in row["scores"]}
    return {name: mean for name, mean in means.items() if 100 * mean < scores[0]}


def _drawn(run: Run, metric: str, cost: str | None) -> bool:
    known = cost is None or run["costs"].get(cost, {}).get("value") is not None
    return run["status"] == "ok" and run["scores"].get(metric) is not None and known


def _run_dots(done: Sequence[Run], metric: str, cost: str, floor: float) -> Json:
    return {
        "type": "scatter", "mode": "markers", "hovertemplate": "%{text}<extra></extra>",
        "marker": {"size": 6, "color": QUIET, "opacity": 0.6},
        "x": [max(run["costs"][cost]["value"], floor) for run in done],
        "y": [100 * run["scores"][metric] for run in done],
        "text": [_hover(run, metric, cost) for run in done],
    }  # fmt: skip


def _mean_marks(
    rows: Sequence[Mapping[str, Any]], done: Sequence[Run], metric: str, cost: str, floor: float, best: Sequence[str],
    axis: Sequence[float], scores: Sequence[float],
) -> Json:  # fmt: skip
    """Return a diamond per method at its median cost and mean score with its interval, filled on the frontier."""
    x = [max(row["costs"][cost]["value"], floor) for row in rows]
    y = [100 * row["scores"][metric]["mean"] for row in rows]
    names = [row["method"] for row in rows]
    runs = [(max(run["costs"][cost]["value"], floor), 100 * run["scores"][metric]) for run in done]
    pixels = _pixels([*zip(x, y, strict=True), *runs], axis, scores)
    on = [name in best for name in names]
    return {
        "type": "scatter", "mode": "markers+text", "x": x, "y": y, "text": [html.escape(name) for name in names],
        "textposition": _places(names, pixels[: len(names)], pixels[len(names) :]),
        "textfont": {"color": [INK if yes else QUIET for yes in on]},
        "cliponaxis": True,
        "marker": {"symbol": ["diamond" if yes else "diamond-open" for yes in on], "size": 11,
                   "color": [ACCENT if yes else INK for yes in on], "line": {"width": 1.5}},
        "error_y": _error(rows, metric),
        "hovertext": [_mean_hover(row, metric, cost) for row in rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _interval_marks(
    rows: Sequence[Mapping[str, Any]], metric: str, means: Sequence[float], height: Mapping[str, int]
) -> Json:
    return {
        "type": "scatter", "mode": "markers", "x": list(means), "y": list(height.values()),
        "marker": {"symbol": "diamond", "size": 11, "color": ACCENT},
        "error_x": _error(rows, metric) | {"color": INK, "thickness": 1.3, "width": 5},
        "hovertext": [_mean_hover(row, metric, None) for row in rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _error(rows: Sequence[Mapping[str, Any]], metric: str) -> Json:
    scores = [row["scores"][metric] for row in rows]
    return {
        "type": "data", "symmetric": False, "thickness": 1, "width": 3, "color": "#9aa5b1",
        "array": [100 * (score["high"] - score["mean"]) for score in scores],
        "arrayminus": [100 * (score["mean"] - score["low"]) for score in scores],
    }  # fmt: skip


def _pixels(
    spots: Sequence[tuple[float, float]], axis: Sequence[float], scores: Sequence[float]
) -> list[tuple[float, float]]:
    """Convert (cost, points) to approximate pixels from the lower left corner."""
    width, height = axis[1] - axis[0], scores[1] - scores[0]
    return [
        (_PIXELS[0] * (math.log10(price) - axis[0]) / width, _PIXELS[1] * (score - scores[0]) / height)
        for price, score in spots
    ]


def _places(
    names: Sequence[str], marks: Sequence[tuple[float, float]], dots: Sequence[tuple[float, float]]
) -> list[str]:
    """Return a text position per mark: the first that overlaps least with other marks, earlier labels, and dots."""
    taken = [(x - 7, x + 7, y - 7, y + 7) for x, y in marks]
    chosen = []
    for at, (name, (x, y)) in enumerate(zip(names, marks, strict=True)):
        width = 7.2 * len(name)
        best, fewest, kept = "middle right", math.inf, taken[at]
        for place, (across, up) in _PLACES.items():
            centre = x + across * (width + 18), y + up * 14
            box = (centre[0] - width / 2, centre[0] + width / 2, centre[1] - 8, centre[1] + 8)
            hits = 3.0 * sum(_overlap(box, other) for i, other in enumerate(taken) if i != at)
            hits += sum(_overlap(box, (dot[0], dot[0], dot[1], dot[1])) for dot in dots)
            hits += 6 * (box[1] > _PIXELS[0] or box[0] < 0 or box[3] > _PIXELS[1] or box[2] < 0)
            if hits < fewest:
                best, fewest, kept = place, hits, box
        chosen.append(best)
        taken.append(kept)
    return chosen


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _offsets(done: Sequence[Run]) -> list[float]:
    """Return a small vertical offset per run, so that equal scores don't hide each other."""
    order: dict[str, int] = {}
    offsets = []
    for run in done:
        at = order[run["method"]] = order.get(run["method"], -1) + 1
        offsets.append((-1) ** at * (0.12 + 0.06 * (at // 2 % 3)))
    return offsets


def _hover(run: Run, metric: str, cost: str | None) -> str:
    lines = [f"<b>{html.escape(str(run['method']))}</b>, seed {html.escape(str(run['seed']))}"]
    lines.append(f"{html.escape(metric)} {percent(run['scores'][metric])}")
    if cost is not None:
        lines.append(f"{cost_name(cost)} {show(run['costs'][cost]['value'], run['costs'][cost]['unit'])}")
    return "<br>".join([*lines, f"run {html.escape(str(run['id']))}"])


def _mean_hover(row: Mapping[str, Any], metric: str, cost: str | None) -> str:
    score = row["scores"][metric]
    lines = [f"<b>{html.escape(row['method'])}</b>, mean of {row['n_seeds']}"]
    lines.append(f"{html.escape(metric)} {percent(score['mean'])} [{percent(score['low'])}, {percent(score['high'])}]")
    if cost is not None:
        lines.append(f"{cost_name(cost)} {show(row['costs'][cost]['value'], row['costs'][cost]['unit'])} (median)")
    return "<br>".join(lines)


def _ticks(low: float, high: float, unit: str) -> list[float]:
    """Return round tick values: powers of ten for a long axis, else 1, 2, 5; minutes and hours for seconds."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    steps = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    if unit == "s":
        clock = [60.0 * minutes for minutes in ((1, 2, 5, 10, 30) if len(steps) > 1 else (1, 10))]
        clock += [3600.0 * hours for hours in (1, 2, 5, 10, 24, 48, 96, 240)]
        ticks = [tick for tick in ticks if tick < 60] + clock
    return ticks


def _tick(value: float, unit: str) -> str:
    if unit == "s" and value >= 3600:
        return f"{value / 3600:g} h"
    if unit == "s" and value >= 60:
        return f"{value / 60:g} min"
    return show(value, unit)


def plain_layout(height: int) -> Json:
    """Return the layout common to all plots: axes, fonts, margins."""
    axis: Json = {
        "gridcolor": RULE, "linecolor": QUIET, "zeroline": False, "ticks": "outside", "tickcolor": QUIET, "ticklen": 4,
        "automargin": True, "showline": True,
    }  # fmt: skip
    return {
        "height": height, "margin": {"l": 60, "r": 20, "t": 16, "b": 50}, "font": dict(_FONT), "showlegend": False,
        "paper_bgcolor": "#fff", "plot_bgcolor": "#fff", "hovermode": "closest",
        "xaxis": dict(axis), "yaxis": dict(axis),
        "hoverlabel": {"bgcolor": "#fff", "bordercolor": QUIET, "font": dict(_FONT), "align": "left"},
    }  # fmt: skip
