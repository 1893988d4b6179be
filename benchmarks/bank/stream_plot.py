"""Draw `stream.json`: forgetting of one network beside a bank, and the time of each add. Plain SVG, no library."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 860, 330, 64, 270, 46, 60  # pixels; HEIGHT of one of the two panels
INK, ACCENT, QUIET, RULE, WARM = "#1f2933", "#0b5cad", "#7b8794", "#e4e7eb", "#b4450f"
Line = tuple[str, str, Sequence[float], str]  # name, colour, values, dashes


def write_plot(content: dict[str, Any], path: Path) -> None:
    """Draw two panels: average score against the number of tasks learnt, and seconds of each add."""
    matrix, adds = content["contrast"]["matrix"], content["adds"]
    lines: list[Line] = []
    if matrix:
        count = len(matrix)
        lines += [
            ("bank: each task as it was added", ACCENT, running([a["score"]["score"] for a in adds[:count]]), ""),
            ("one network: each when it was learnt", WARM, running([row[i] for i, row in enumerate(matrix)]), "5 4"),
            ("one network: all of them now", WARM, [sum(row) / len(row) for row in matrix], ""),
            ("majority class, or mean", QUIET, running(content["contrast"]["majority"][:count]), "2 3"),
        ]
    took = [1000 * (add["seconds"]["add"] or 0.0) for add in adds]
    parts = [
        panel(TOP, "Average test score of the tasks so far (headline metrics)", lines, 1.0, "tasks learnt"),
        panel(TOP + HEIGHT + GAP, "Adding a task to the bank, milliseconds", [("an add", ACCENT, took, "")],
              1.25 * max(took, default=1.0) or 1.0, "tasks in the bank"),
    ]  # fmt: skip
    total = 2 * HEIGHT + GAP + TOP + 40
    style = f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}"'
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" '
        f'{style}>\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n",
        encoding="utf-8",
    )


def running(values: Sequence[float]) -> list[float]:
    """Return the running mean: of the first, of the first two, …."""
    return [total / (i + 1) for i, total in enumerate(accumulate(values))]


def panel(top: float, title: str, lines: Sequence[Line], highest: float, below: str) -> str:
    """Draw one panel with its axes, its lines, and their names next to their last points."""
    longest = max((len(values) for _, _, values, _ in lines), default=1)
    inside, foot = WIDTH - LEFT - RIGHT, top + HEIGHT - 40
    parts = [f'<text x="{LEFT}" y="{top - 14}" font-weight="600">{title}</text>']

    def x(place: float) -> float:
        return LEFT + inside * (place - 1) / max(1, longest - 1)

    def y(value: float) -> float:
        return foot - (foot - top) * min(value, highest) / highest

    for share in range(5):
        value = highest * share / 4
        shown = f"{value:.2f}" if highest <= 1.5 else f"{value:.0f}"
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + inside}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{RULE}"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="{QUIET}">{shown}</text>')
    for place in sorted({1, *(round(1 + (longest - 1) * share / 4) for share in range(1, 5))}):
        parts.append(f'<text x="{x(place):.1f}" y="{foot + 18}" text-anchor="middle" fill="{QUIET}">{place}</text>')
    parts.append(f'<text x="{LEFT + inside / 2}" y="{foot + 36}" text-anchor="middle">{below}</text>')
    heights = apart([y(values[-1]) for _, _, values, _ in lines if values])
    for (name, colour, values, dashes), height in zip([line for line in lines if line[2]], heights, strict=True):
        points = " ".join(f"{x(i + 1):.1f},{y(value):.1f}" for i, value in enumerate(values))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        )
        parts.append(f'<text x="{x(len(values)) + 8:.1f}" y="{height + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(parts)


def apart(heights: Sequence[float], least: float = 17) -> list[float]:
    """Return the heights moved down where labels would overlap."""
    placed: dict[int, float] = {}
    free = float("-inf")
    for place in sorted(range(len(heights)), key=lambda place: heights[place]):
        placed[place] = free = max(heights[place], free + least)
    return [placed[place] for place in range(len(heights))]


if __name__ == "__main__":
    write_plot(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
