"""The page of a board over several tasks: one self-contained HTML file in the style of the report."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from graftwork.compare.chart import ACCENT, Axis, Series, draw
from graftwork.compare.leaderboard_report import page
from graftwork.compare.page_table import Cell, Heading, PageTable, meaning
from graftwork.compare.plots import ROW_PIXELS, frontier_charts, near, padded
from graftwork.compare.report_tables import p_value
from graftwork.compare.tasks_table import enough_lines, headings, price, score, spent_line, summary_cells, verdicts
from graftwork.io.files import finite
from graftwork.units import metric_title, percent, several

Content = Mapping[str, Any]
MEAN = "mean score"  # the metric of the chart of score against price


def render_tasks(content: Content, folder: Path) -> str:
    """Return the page's HTML, with links from `folder` to the boards. All text from data is escaped."""
    counted, every = len(content["counted"]), len(content["tasks"])
    told = {
        "content": content,
        "title": content["name"],
        "about": f"{several(every, 'task')}{f', {counted} of them counted' if counted < every else ''}",
        "enough": enough_lines(content),
        "summary": _summary(content),
        "charts": frontier_charts(finite(_priced(content)), ()),
        "dots": differences_chart(content),
        "scores": _scores(content),
        "tasks": _tasks(content, folder),
        "pairs": _pairs(content),
        "stored": _stored(content),
        "verdicts": verdicts(content),
        "spent": spent_line(content),
    }
    return page("tasks.html.j2", told)


def _summary(content: Content) -> PageTable:
    against = content["against"] or "no method"
    hints = (
        "",
        "Tasks with a score",
        "Mean of the scores, in points",
        "1 is the best of the methods that have a score on every task",
        f"Geometric mean of the ratios of the scores to those of {against}",
        "Tasks on which the mean over seeds is the highest",
        f"{meaning('stored_bytes')} Of one run on each task, together.",
        f"{meaning('train_seconds')} Of one run on each task, together.",
    )
    heads = [
        Heading(title, hint, number=at > 0)
        for at, (title, hint) in enumerate(zip(headings(content), hints, strict=True))
    ]
    rows: list[list[Cell | str]] = []
    for row in content["rows"]:
        name, *numbers, _, _ = summary_cells(row)
        costs = [Cell(price(row, cost), _sum(row, cost)) for cost in ("stored_bytes", "train_seconds")]
        rows.append([Cell(name, look="lost" if row["mean"] is None else ""), *numbers, *costs])
    return PageTable("Methods over all tasks", heads, rows)


def _sum(row: Mapping[str, Any], cost: str) -> float | None:
    return row["costs"][cost]["sum"] if cost in row["costs"] else None


def _priced(content: Content) -> dict[str, Any]:
    """Return the summary as a board, so that the mean score is drawn against every price of all tasks together."""
    rows = [
        {
            "method": row["method"],
            "status": "ok",
            "n_seeds": len(row["scores"]),
            "scores": {MEAN: {"mean": row["mean"], "low": row["mean"], "high": row["mean"]}},
            "costs": {
                name: {"value": cost["sum"], "unit": cost["unit"]}
                for name, cost in row["costs"].items()
                if len(cost["by_task"]) == len(row["scores"])
            },
        }
        for row in content["rows"]
        if row["mean"] is not None
    ]
    return {"headline_metric": MEAN, "rows": rows, "task": {}}


def differences_chart(content: Content) -> Markup | None:
    """Return the points of each method above the reference: a dot per task, and the mean; None without two methods.

    The reference itself is left out, and so are methods far below the others.
    """
    rows = {row["method"]: row["counted"] for row in content["rows"] if row["mean"] is not None}
    base = rows.pop(content["against"], None)
    if not rows or base is None:
        return None
    gaps = {name: [found[task] - base[task] for task in content["counted"]] for name, found in rows.items()}
    spans = near([(min(found), max(found)) for found in gaps.values()])
    gaps = {name: found for name, found in gaps.items() if (min(found), max(found)) in spans}
    means = [100 * sum(found) / len(found) for found in gaps.values()]
    heights = [-float(at) for at in range(len(gaps))]
    dots = [
        (100 * gap, height, f"{name}, {task}\n{100 * gap:+.1f} points")
        for height, (name, found) in zip(heights, gaps.items(), strict=True)
        for task, gap in zip(content["counted"], found, strict=True)
    ]
    told = [f"{name}, mean\n{mean:+.1f} points" for name, mean in zip(gaps, means, strict=True)]
    series = [
        Series([0.0, 0.0], [0.6, 0.6 - len(gaps)], mark="", line="dotted"),
        Series([gap for gap, *_ in dots], [at for _, at, _ in dots], [text for *_, text in dots], opacity=0.75),
        Series(means, heights, told, colour=ACCENT, mark="diamond", size=6),
    ]
    x = Axis(f"points above {content['against']}", *padded([*spans, (0.0, 0.0)]))
    y = Axis("", 0.6 - len(gaps), 0.6, list(zip(heights, gaps, strict=True)), grid=False)
    return draw(series, x, y, 90 + ROW_PIXELS * len(gaps), f"{x.title} on each task, by method")


def _scores(content: Content) -> PageTable:
    """Return every score; the best of a task has the darkest cell, and its median one half as dark."""
    found = {
        task: [row["counted"][task] for row in content["rows"] if task in row["counted"]] for task in content["counted"]
    }

    def cell(row: Mapping[str, Any], task: str) -> Cell:
        if task not in row["counted"]:
            return Cell(score(row, task))
        mean, best, middle = row["counted"][task], max(found[task]), statistics.median(found[task])
        heat = max(0.0, 1 - (best - mean) / (best - middle) / 2) if best > middle else float(mean == best)
        return Cell(score(row, task), mean, look="first" if task in row["best_on"] else "", heat=heat)

    return PageTable(
        "Scores on every task",
        [Heading("method", number=False), *map(Heading, content["counted"])],
        [[row["method"], *(cell(row, task) for task in content["counted"])] for row in content["rows"]],
    )


def _tasks(content: Content, folder: Path) -> PageTable:
    titles = ("task", "metric", "train", "test", "what its board says")
    rows: list[list[Cell | str]] = []
    for task in content["tasks"]:
        name = Cell(task["name"], look="" if task["status"] == "ok" else "lost", link=_page(task, folder))
        if task["status"] != "ok":
            rows.append([name, task["status"], "", "", task["error"]])
            continue
        counts = [f"{task['rows'][split]:,}" if split in task["rows"] else "–" for split in ("train", "test")]
        rows.append([name, metric_title(task["metric"], task.get("positive")), *counts, _first(task["answer"])])
    return PageTable("The tasks", [Heading(title, number=title in ("train", "test")) for title in titles], rows)


def _first(answer: str) -> str:
    """Return the first sentence of a board's answer; the rest is on the board."""
    return answer.partition(". ")[0].removesuffix(".") + "."


def _pairs(content: Content) -> PageTable:
    titles = (
        "method",
        "is",
        "than",
        "over such tasks",
        "on these tasks",
        "by, points",
        "p, corrected",
        "tasks above",
        "shown on",
    )

    def interval(low: float | None, high: float | None) -> Cell:
        return Cell("–" if low is None or high is None else f"[{percent(low)}, {percent(high)}]", look="interval")

    rows = [
        [
            pair["a"],
            Cell(pair["verdict"], look="" if pair["verdict"] == "cannot tell" else "verdict"),
            pair["b"],
            interval(pair["low"], pair["high"]),
            interval(pair["low_here"], pair["high_here"]),
            percent(pair["delta"]),
            p_value(pair["p_holm"]),
            f"{pair['tasks_above']} of {len(content['counted'])}",
            str(pair["tasks_better"]),
        ]
        for pair in content["differences"]
    ]
    return PageTable("All pairs of methods", [Heading(title, number=at > 4) for at, title in enumerate(titles)], rows)


def _stored(content: Content) -> PageTable:
    def cell(row: Mapping[str, Any], task: str) -> Cell:
        return Cell(
            price(row, "stored_bytes", task), row["costs"].get("stored_bytes", {"by_task": {}})["by_task"].get(task)
        )

    return PageTable(
        "Stored for each task",
        [Heading("of one run, median", number=False), *map(Heading, content["counted"])],
        [[row["method"], *(cell(row, task) for task in content["counted"])] for row in content["rows"]],
    )


def _page(task: Mapping[str, Any], folder: Path) -> str:
    """Return the path of a task's page relative to `folder`; empty if it has none."""
    board = task.get("board")
    return "" if not board else quote(os.path.relpath(Path(board) / "report.html", folder))
