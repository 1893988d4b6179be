"""Print the boards of a benchmark as Markdown, the section *Results* of its README: `python boards.py BENCHMARK`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from graftwork.units import percent, show

HERE = Path(__file__).parent
COSTS = {"train_seconds": "training", "trained_parameters": "trained", "stored_bytes": "stored", "train_flops": "FLOPs"}


def tables(benchmark: str) -> str:
    """Format a table per board, best first: score in points, interval, verdict against the majority, price."""
    files = sorted((HERE / benchmark / "results").glob("*/leaderboard.json"))
    return "\n\n".join(_table(path.parent.name, json.loads(path.read_text(encoding="utf-8"))) for path in files)


def _table(task: str, board: dict[str, Any]) -> str:
    rows = board["task"]["rows"]
    header = ["method", board["headline_metric"], "95 % interval", "beside `majority`", *COSTS.values()]
    lines = [header, ["---"] * len(header)]
    for row in board["rows"]:
        score = row["scores"][board["headline_metric"]]
        spread = f" ± {percent(score['sd'])}" if score["sd"] else ""
        lines.append([
            f"`{row['method']}`", f"{percent(score['mean'])}{spread}",
            f"{percent(score['low'])} to {percent(score['high'])}", _verdict(board, row["method"]),
            *(show(row["costs"][name]["value"], row["costs"][name]["unit"]) for name in COSTS),
        ])  # fmt: skip
    runs = max(row["n_seeds"] for row in board["rows"])
    title = f"{task}: {rows['test']:,} rows of test, {rows['train']:,} of train, {runs} seed{'s' if runs > 1 else ''}"
    return f"{title}\n\n" + "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _verdict(board: dict[str, Any], method: str) -> str:
    """Return the verdict of the paired differences on a method and the majority class."""
    for pair in board["differences"]:
        if {pair["a"], pair["b"]} == {method, "majority"}:
            said = {"better": "worse", "worse": "better"}.get(pair["verdict"], pair["verdict"])
            return str(pair["verdict"] if pair["a"] == method else said)
    return ""


if __name__ == "__main__":
    print(tables(sys.argv[1]))
