"""Draw the shortfalls of `decision.json`: the mean stated one against the mean true one. Plain SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SIDE, LEFT, TOP = 360, 70, 50  # pixels; SIDE of the square that holds the points
INK, ACCENT, QUIET, RULE = "#1f2933", "#0b5cad", "#7b8794", "#e4e7eb"


def write_plot(content: Mapping[str, Any], path: Path) -> None:
    """Draw a point per band of stated shortfalls, in points of the metric, and the diagonal of perfect calibration."""
    bands = content["simulated"]["bands"]
    most = int(max(100 * max(band["stated"], band["true"]) for band in bands)) + 1
    foot, edge = TOP + SIDE, LEFT + SIDE

    def x(value: float) -> float:
        return LEFT + SIDE * value / most

    def y(value: float) -> float:
        return foot - SIDE * value / most

    parts = [
        f'<text x="{LEFT}" y="{TOP - 20}" font-weight="600">Stated and true shortfall of the chosen method</text>',
        f'<line x1="{LEFT}" y1="{foot}" x2="{edge}" y2="{TOP}" stroke="{QUIET}" stroke-dasharray="5 4"/>',
    ]
    for tick in range(most + 1):
        parts += [
            f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{edge}" y2="{y(tick):.1f}" stroke="{RULE}"/>',
            f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>',
            f'<text x="{x(tick):.1f}" y="{foot + 20}" text-anchor="middle">{tick}</text>',
        ]
    for band in bands:
        across, up = x(100 * band["stated"]), y(100 * band["true"])
        parts += [
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="4" fill="{ACCENT}"/>',
            f'<text x="{across + 8:.1f}" y="{up + 16:.1f}" fill="{QUIET}">{band["boards"]:,} boards</text>',
        ]
    parts.append(f'<text x="{LEFT}" y="{foot + 44}">mean stated, points (upwards: mean true, points)</text>')
    width, height = edge + 90, foot + 60
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    write_plot(json.loads((RESULTS / "decision.json").read_text(encoding="utf-8")), RESULTS / "calibration.svg")
