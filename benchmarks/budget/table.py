"""Print the climbs in `results/` as Markdown: forecast, actual time, and share of the budget spent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def table() -> str:
    """Format a row per executed rung."""
    lines = [["data", "budget", "rung", "forecast", "took", "off by", "validation", "decision"], ["---"] * 8]
    for path in sorted(RESULTS.glob("*.json")):
        for climb in json.loads(path.read_text(encoding="utf-8"))["climbs"]:
            lines += _rows(climb)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _rows(climb: dict[str, Any]) -> Iterator[list[str]]:
    name, budget = climb["data"], climb["budget_seconds"]
    whole = f"{climb['process_seconds']:.1f} s, {climb['process_seconds'] / budget:.0%} of it"
    if climb["ladder"] is None:
        yield [name, f"{budget:.0f} s", "whole process", "", whole, "", "", f"exit code {climb['exit_code']}"]
        return
    for rung in climb["ladder"]["rungs"]:
        predicted, took = rung["predicted_seconds"], rung["seconds"]
        off = f"{(predicted - took) / took:+.0%}" if predicted is not None and took else ""
        score = f"{rung['validation']['score']:.3f}" if rung["validation"] else ""
        chosen = ", chosen" if rung["chosen"] else ""
        cells = ["" if time is None else f"{time:.1f} s" for time in (predicted, took)]
        yield [name, f"{budget:.0f} s", f"`{rung['method']}`", *cells, off, score, rung["decision"] + chosen]
    yield [name, f"{budget:.0f} s", "whole process", "", whole, "", "", climb["ladder"]["stopped"]]


if __name__ == "__main__":
    print(table())
