"""Draw `generations.json`: the mean score over tasks against energy. Plain SVG, no library."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 920, 520, 64, 270, 56, 60  # pixels
INK, QUIET, RULE = "#1f2933", "#7b8794", "#e4e7eb"
COLOURS = {
    "word_vectors": "#7a5195", "bidirectional": "#bc5090", "awd_lstm": "#b4450f", "causal": "#2f7d32",
    "masked": "#0b5cad",
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A row of the boards."""

    network: str  # "" for a baseline
    method: str
    fresh: bool
    joules: float  # pre-training, and one adaptation to each task
    score: float  # mean over tasks

    @property
    def label(self) -> str:
        """Return the label beside the mark."""
        return f"{self.network} {self.method}".strip() + (", fresh" if self.fresh else "")


def points(content: Mapping[str, Any]) -> list[Point]:
    """Return every row that has a board on every task, with its energy."""
    units = {name: unit["result"] for name, unit in content["units"].items() if unit["status"] == "ok"}
    judged = units.get("judge.generations", {"scores": {}, "tasks": []})
    found = []
    for row, score in judged["scores"].items():
        network, method, fresh = parts_of(row)
        joules = [adaptation(units, network, method, fresh, task) for task in judged["tasks"]]
        if network and not fresh:
            joules.append(joules_of(units[f"pretrain.{network}"]["costs"]))
        if None not in joules:
            found.append(Point(network, method, fresh, sum(one for one in joules if one), score["mean"]))
    return sorted(found, key=lambda point: point.joules)


def parts_of(row: str) -> tuple[str, str, bool]:
    """Split `masked full, fresh` into its network, its method, and whether it is fresh."""
    name, comma, _ = row.partition(", ")
    network, space, method = name.partition(" ")
    return (network, method, bool(comma)) if space else ("", name, False)


def adaptation(units: Mapping[str, Any], network: str, method: str, fresh: bool, task: str) -> float | None:
    """Return the joules of one run on one task."""
    own = f"{network or 'baselines'}{'.fresh' if fresh else ''}"
    for row in units.get(f"board.{own}.{task}", {"rows": ()})["rows"]:
        if row["method"].split(":")[0] == method:
            return joules_of(row["costs"])
    return None


def joules_of(costs: Mapping[str, Any]) -> float | None:
    """Return the value of the energy meter."""
    cost = costs.get("energy_joules")
    return cost["value"] if cost else None


def write_plot(content: Mapping[str, Any], path: Path) -> None:
    """Draw score in points against joules on a logarithmic axis."""
    drawn = [point for point in points(content) if point.method != "majority" and point.joules > 0]
    if not drawn:
        return
    low = math.floor(math.log10(min(point.joules for point in drawn)))
    high = max(low + 1, math.ceil(math.log10(max(point.joules for point in drawn))))
    floor = math.floor(20 * min(point.score for point in drawn)) / 20
    top = max(floor + 0.05, math.ceil(20 * max(point.score for point in drawn)) / 20)
    style = f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}"'
    body = "\n".join([*axes(low, high, floor, top), *marks(drawn, low, high, floor, top)])
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'{style}>\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def across(joules: float, low: int, high: int) -> float:
    """Return the x coordinate in pixels."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(joules) - low) / (high - low)


def up(score: float, floor: float, top: float) -> float:
    """Return the y coordinate in pixels."""
    return HEIGHT - FOOT - (HEIGHT - FOOT - TOP) * (score - floor) / (top - floor)


def axes(low: int, high: int, floor: float, top: float) -> list[str]:
    """Return lines, numbers and names of the axes."""
    parts = [
        f'<text x="{LEFT}" y="24" font-weight="600">Mean test score of the tasks, and the energy it took: '
        "pre-training and one adaptation to each task</text>",
        f'<text x="{LEFT}" y="42" fill="{QUIET}">filled: pre-trained; hollow: the same network without '
        "pre-training; square: no network</text>",
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 18}" text-anchor="middle">joules</text>',
    ]
    for power in range(low, high + 1):
        x = across(10.0**power, low, high)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - FOOT}" stroke="{RULE}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - FOOT + 18}" text-anchor="middle" fill="{QUIET}">{10**power:,g}</text>'
        )
    count = round((top - floor) / 0.05)
    for step in range(count + 1):
        score = floor + 0.05 * step
        y = up(score, floor, top)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{QUIET}">{100 * score:.0f}</text>')
    return parts


def marks(drawn: Sequence[Point], low: int, high: int, floor: float, top: float) -> list[str]:
    """Return a mark per point; names are in the margin in the order of the scores, joined to their marks by lines."""
    parts = []
    ordered = sorted(drawn, key=lambda point: -point.score)
    space = min(18.0, (HEIGHT - FOOT - TOP) / max(1, len(ordered) - 1))
    for place, point in enumerate(ordered):
        x, y = across(point.joules, low, high), up(point.score, floor, top)
        colour, label = COLOURS.get(point.network, INK), TOP + space * place
        fill = "white" if point.fresh else colour
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT + 8}" y2="{label:.1f}" stroke="{colour}" '
            'stroke-opacity="0.18"/>'
        )
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"' if point.network else (
            f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"'
        )  # fmt: skip
        parts.append(f'{shape} fill="{fill}" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT + 12}" y="{label + 4:.1f}" font-size="12" fill="{colour}">'
            f"{escape(point.label)} {100 * point.score:.1f}</text>"
        )
    return parts


if __name__ == "__main__":
    write_plot(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
