"""The report's charts: score against cost, a dot per run, and the expected best of n tries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from graftwork.compare.chart import ACCENT, COLOURS, FAINT, INK, LETTER, Axis, Label, Series, draw, inner_size
from graftwork.compare.frontier import DEFAULT_COST, frontier, points
from graftwork.compare.sentences import cost_name, price_tag, title_of
from graftwork.core.meter import meaning_of
from graftwork.units import percent, show

Board = Mapping[str, Any]
Row = Mapping[str, Any]
Run = Mapping[str, Any]
Spot = tuple[float, float]

MOST_METRICS, MOST_COSTS = 4, 6  # metrics and costs, at most, for which score is drawn against cost
AXES = (  # costs that come first, in this order
    "train_seconds", "predict_latency_seconds", "stored_bytes", "peak_memory_bytes", "money", "energy_joules",
    "trained_parameters", "predict_per_second", "train_flops",
)  # fmt: skip
FRONTIER_PIXELS, BEST_PIXELS, ROW_PIXELS = 380, 320, 40  # heights of the charts; the last of a method's row
# Candidate offsets of a label's centre from its mark, in label widths and in lines.
_PLACES: Sequence[Spot] = (
    (-0.5, 0.8), (0.5, -0.8), (0.5, 0.8), (-0.5, 0.0), (0.5, 0.0), (-0.5, -0.8), (0.0, 1.2), (0.0, -1.2),
)  # fmt: skip


def charts(board: Board, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the charts of a board: those of `frontier_charts`, and `dots` and `best` as SVG.

    `best` is None without curves; `below` names the rows too far below the others to be drawn.
    """
    return frontier_charts(board, runs) | {
        "dots": dots_chart(board, runs),
        "best": best_chart(board),
        "below": _below_line(board, runs),
    }


def frontier_charts(board: Board, runs: Sequence[Run]) -> dict[str, Any]:
    """Return `axes`, metrics and costs with their titles, and in `frontier` a chart of each pair of them.

    A chart has `metric`, `cost`, `svg`, `zero` (whether a cost of zero is drawn), and `below`, as in `charts`.
    """
    metrics, costs = axes(board)
    drawn = [
        {"metric": metric, "cost": cost} | frontier_chart(by_metric(board, metric), runs, cost)
        for metric in metrics
        for cost in costs
    ]
    return {"axes": (metrics, costs), "frontier": drawn}


def axes(board: Board) -> tuple[dict[str, str], dict[str, str]]:
    """Return the metrics and the costs of score against price, with their titles; the usual ones first."""
    metrics = dict.fromkeys([board["headline_metric"], *(name for row in board["rows"] for name in row["scores"])])
    usual = board.get("frontier_cost", DEFAULT_COST)
    known = [name for name in price_tag(board["rows"]) if points(board["rows"], board["headline_metric"], name)]
    costs = sorted(known, key=lambda name: (name != usual, AXES.index(name) if name in AXES else len(AXES)))
    return (
        {name: title_of(board, name) for name in list(metrics)[:MOST_METRICS]},
        {name: cost_name(name) for name in costs[:MOST_COSTS]},
    )


def by_metric(board: Board, metric: str) -> Board:
    """Return the board as if `metric` were its headline metric. Failed runs are counted only in the real one."""
    if metric == board["headline_metric"]:
        return board
    return {**board, "headline_metric": metric, "rows": [{**row, "counted": None} for row in board["rows"]]}


def frontier_chart(board: Board, runs: Sequence[Run], cost: str) -> dict[str, Any]:
    """Return the headline score (points) against `cost` on a log axis: runs, means with intervals, the frontier."""
    metric = board["headline_metric"]
    rows = {row["method"]: row for row in board["rows"]}
    means = [rows[point.name] for point in points(board["rows"], metric, cost)]
    done = [run for run in runs if _drawn(run, metric, cost)]
    values = [one["costs"][cost]["value"] for one in [*means, *done]]
    unit = next((row["costs"][cost]["unit"] for row in means), "")
    floor = min((value for value in values if value > 0), default=1.0) / 3  # position of a cost of zero
    y = _score_axis(title_of(board, metric), score_range(board, runs))
    seen = [row["costs"][cost]["value"] for row in means if 100 * row["scores"][metric]["mean"] >= y.low]
    seen += [run["costs"][cost]["value"] for run in done if 100 * run["scores"][metric] >= y.low]
    x = price_axis(cost_name(cost), seen, floor, unit)

    def spot(one: Row) -> Spot:
        score = one["scores"][metric]
        return max(one["costs"][cost]["value"], floor), 100 * (score["mean"] if isinstance(score, Mapping) else score)

    best = frontier(points(board["rows"], metric, cost))
    line = [spot(rows[name]) for name in best]
    if meaning_of(cost).more_is_better:
        line.reverse()
    places = dict(zip((row["method"] for row in means), _labels(means, done, spot, x, y), strict=True))
    series = [
        Series(*_unzip(map(spot, done)), mark="specks", opacity=0.6),
        Series(*_unzip(line), colour=ACCENT, mark="", line="steps"),
    ]
    for on, mark, colour in ((False, "open", INK), (True, "diamond", ACCENT)):
        chosen = [row for row in means if (row["method"] in best) == on]
        series.append(
            Series(
                *_unzip(map(spot, chosen)),
                [_mean_title(row, board, cost) for row in chosen],
                colour=colour,
                mark=mark,
                size=6,
                spans=_intervals(chosen, metric),
                labels=[
                    Label(row["method"], right, up, INK if on else FAINT)
                    for row in chosen
                    for right, up in [places[row["method"]]]
                ],
            )
        )
    about = f"{title_of(board, metric)} against {cost_name(cost)}; no method is both better and cheaper than: "
    svg = draw(series, x, y, FRONTIER_PIXELS, about + ", ".join(best))
    return {"svg": svg, "zero": any(value <= 0 for value in values), "below": _below_line(board, runs)}


def shipped_chart(board: Board) -> Markup | None:
    """Return score against predictions per second of methods and compressed modules; None without the latter."""
    found = board.get("shipped")
    if not found or not found["rows"]:
        return None
    both = {**board, "rows": [*board["rows"], *found["rows"]]}
    return Markup(frontier_chart(both, (), found["frontier_cost"])["svg"])


def dots_chart(board: Board, runs: Sequence[Run]) -> Markup:
    """Return the scores of all runs: a line per method, best on top, with a dot per run, the mean and its interval."""
    metric, scores = board["headline_metric"], score_range(board, runs)
    rows = [row for row in board["rows"] if metric in row["scores"]]
    height = {row["method"]: -float(at) for at, row in enumerate(rows)}
    done = [run for run in runs if _drawn(run, metric, None) and run["method"] in height]
    below = _below(board, scores)
    notes = [Label(f"◂ {percent(mean)}", 4 * LETTER, 0, FAINT) for mean in below.values()]
    series = [
        Series(
            [100 * row["scores"][metric]["mean"] for row in rows],
            list(height.values()),
            [_mean_title(row, board, None) for row in rows],
            colour=ACCENT,
            mark="diamond",
            size=6,
            spans=_intervals(rows, metric),
            across=True,
        ),
        Series(
            [100 * run["scores"][metric] for run in done],
            [height[run["method"]] + offset for run, offset in zip(done, _offsets(done), strict=True)],
            [_run_title(run, board) for run in done],
            opacity=0.75,
        ),
        Series([scores[0]] * len(below), [height[name] for name in below], mark="", labels=notes),
    ]
    x = _score_axis(title_of(board, metric), scores)
    y = Axis("", 0.6 - max(1, len(rows)), 0.6, [(at, name) for name, at in height.items()], grid=False)
    return draw(series, x, y, 90 + ROW_PIXELS * max(1, len(rows)), f"{title_of(board, metric)}, every run")


def best_chart(board: Board) -> Markup | None:
    """Return the expected best validation score (points) of n tries against their cost; None without curves."""
    curves = board.get("expected_best") or []
    if not curves:
        return None
    methods = list(dict.fromkeys(one["method"] for one in curves))
    series = []
    for one in curves:
        name, tries = one["method"], one["points"]
        titles = [
            f"{name}, best of {point['n']}\n{percent(point['score'])} for {show(point['cost'], 's')}" for point in tries
        ]
        series.append(
            Series(
                [point["cost"] for point in tries],
                [100 * point["score"] for point in tries],
                titles,
                name,
                COLOURS[methods.index(name) % len(COLOURS)],
            )
        )
    prices = [price for one in series for price in one.x]
    x = price_axis(
        f"{cost_name(curves[0]['cost'])} of all tries",
        prices,
        min((price for price in prices if price > 0), default=1.0),
        "s",
    )
    spans = [(min(one.y) / 100, max(one.y) / 100) for one in series]
    y = _score_axis(f"{title_of(board, board['headline_metric'])} on validation", padded(spans))
    return draw(series, x, y, BEST_PIXELS, f"{y.title} against {x.title}")


def score_range(board: Board, runs: Sequence[Run]) -> Spot:
    """Return the ends of the score axis, in points: room for all rows but those far below the others."""
    metric = board["headline_metric"]
    spans = []
    for row in board["rows"]:
        if metric not in row["scores"]:
            continue
        own = [run["scores"][metric] for run in runs if run["method"] == row["method"] and _drawn(run, metric, None)]
        score = row["scores"][metric]
        spans.append((min([score["low"], score["mean"], *own]), max([score["high"], score["mean"], *own])))
    return padded(near(spans))


def near(spans: Sequence[Spot]) -> list[Spot]:
    """Return the spans, the highest first, without those far below the others."""
    kept = sorted(spans, reverse=True)
    while len(kept) > 3 and kept[0][1] - kept[-2][0] < (kept[0][1] - kept[-1][0]) / 2.5:
        kept.pop()
    return kept


def padded(spans: Sequence[Spot]) -> Spot:
    """Return the ends of an axis of points with room for these spans, which are fractions."""
    low, high = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=1.0)
    pad = 0.06 * (high - low) or 0.01
    return 100 * (low - pad), 100 * (high + pad)


def _below(board: Board, scores: Spot) -> dict[str, float]:
    """Return the rows below the score axis, with their means."""
    metric = board["headline_metric"]
    means = {row["method"]: row["scores"][metric]["mean"] for row in board["rows"] if metric in row["scores"]}
    return {name: mean for name, mean in means.items() if 100 * mean < scores[0]}


def _below_line(board: Board, runs: Sequence[Run]) -> str:
    found = _below(board, score_range(board, runs))
    return ", ".join(f"{name} ({percent(mean)})" for name, mean in found.items())


def _drawn(run: Run, metric: str, cost: str | None) -> bool:
    known = cost is None or run["costs"].get(cost, {}).get("value") is not None
    return run["status"] == "ok" and run["scores"].get(metric) is not None and known


def _unzip(spots: Any) -> tuple[list[float], list[float]]:
    listed = list(spots)
    return [x for x, _ in listed], [y for _, y in listed]


def _intervals(rows: Sequence[Row], metric: str) -> list[Spot]:
    return [(100 * row["scores"][metric]["low"], 100 * row["scores"][metric]["high"]) for row in rows]


def _score_axis(metric: str, scores: Spot) -> Axis:
    return Axis(f"{metric}, points", *scores)


def price_axis(title: str, values: Sequence[float], floor: float, unit: str) -> Axis:
    """Return a log axis for these values, with room for labels and round ticks."""
    span = [math.log10(max(value, floor)) for value in values] or [-1.0, 0.0]
    pad = 0.1 * max(max(span) - min(span), 0.5)
    low, high = 10 ** (min(span) - pad), 10 ** (max(span) + pad)
    return Axis(title, low, high, [(value, _tick(value, unit)) for value in _ticks(low, high, unit)], log=True)


def _labels(means: Sequence[Row], done: Sequence[Run], spot: Any, x: Axis, y: Axis) -> list[Spot]:
    """Return where the name of each mean goes, in pixels from its mark.

    It is the first of `_PLACES` that overlaps least with other marks, earlier names and dots.
    """
    across, up = inner_size(y, FRONTIER_PIXELS)
    marks, dots = ([(across * x.share(a), up * y.share(b)) for a, b in map(spot, some)] for some in (means, done))
    taken = [(at - 7, at + 7, height - 7, height + 7) for at, height in marks]
    chosen = []
    for number, (row, mark) in enumerate(zip(means, marks, strict=True)):
        width = LETTER * len(row["method"])
        others = [box for at, box in enumerate(taken) if at != number]
        offsets = [(right * (width + 18), 14 * lift) for right, lift in _PLACES]

        def hits(offset: Spot, mark: Spot = mark, width: float = width, others: Any = others) -> float:
            box = _box(mark, offset, width)
            outside = box[0] < 0 or box[1] > across or box[2] < 0 or box[3] > up
            crossed = sum(_overlap(box, (dot[0], dot[0], dot[1], dot[1])) for dot in dots)
            return 3.0 * sum(_overlap(box, other) for other in others) + crossed + 6 * outside

        chosen.append(min(offsets, key=hits))
        taken.append(_box(mark, chosen[-1], width))
    return chosen


def _box(mark: Spot, offset: Spot, width: float) -> tuple[float, float, float, float]:
    middle, height = mark[0] + offset[0], mark[1] + offset[1]
    return middle - width / 2, middle + width / 2, height - 8, height + 8


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


def _run_title(run: Run, board: Board) -> str:
    metric = board["headline_metric"]
    scored = f"{title_of(board, metric)} {percent(run['scores'][metric])}"
    return f"{run['method']}, seed {run['seed']}\n{scored}\nrun {run['id']}"


def _mean_title(row: Row, board: Board, cost: str | None) -> str:
    metric = board["headline_metric"]
    score, title = row["scores"][metric], title_of(board, metric)
    lines = [f"{row['method']}, mean of {row['n_seeds']}"]
    interval = f" [{percent(score['low'])}, {percent(score['high'])}]" if score["low"] < score["high"] else ""
    lines.append(f"{title} {percent(score['mean'])}{interval}")
    if cost is not None:
        lines.append(f"{cost_name(cost)} {show(row['costs'][cost]['value'], row['costs'][cost]['unit'])} (median)")
    return "\n".join(lines)


def _ticks(low: float, high: float, unit: str) -> list[float]:
    """Return round tick values: powers of ten for a long axis, else 1, 2, 5; minutes and hours for seconds."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    steps = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    if unit == "s":
        clock = [60.0 * minutes for minutes in ((1, 2, 5, 10, 30) if len(steps) > 1 else (1, 10))]
        hours = (1, 2, 5, 10, 24, 48, 96, 240) if len(steps) > 1 else (1, 10, 100, 1000, 10_000, 100_000)
        ticks = [tick for tick in ticks if tick < 50] + clock + [3600.0 * hour for hour in hours]
    return ticks


def _tick(value: float, unit: str) -> str:
    if unit == "s" and value >= 3600:
        return f"{value / 3600:,.0f} h"
    if unit == "s" and value >= 60:
        return f"{value / 60:g} min"
    return show(value, unit)
