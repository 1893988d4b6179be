"""Print the boards in `results/` as one Markdown table; a test compares it with docs/explanation/price-tags.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graftwork.compare.sentences import title_of
from graftwork.units import percent, show

RESULTS = Path(__file__).parent / "results"
TASKS = {
    "trec6": "trec6",
    "mrpc": "mrpc",
    "stsb": "stsb",
    "sms_spam": "sms_spam",
    "banking77": "banking77",
    "crowdflower_primary_emotions": "emotions",
}
COSTS = {"train_seconds": "training", "trained_parameters": "trained", "stored_bytes": "stored", "train_flops": "FLOPs"}


def table() -> str:
    """Format a row per method, best on trec6 first: headline scores in points, and the price on trec6."""
    files = {task: RESULTS / task / "leaderboard.json" for task in TASKS}
    boards = {task: json.loads(path.read_text()) for task, path in files.items() if path.exists()}
    rows = {task: {row["method"]: row for row in board["rows"]} for task, board in boards.items()}
    shown = {task: TASKS[task] for task in boards}
    told = {task: title_of(board, board["headline_metric"]) for task, board in boards.items()}
    header = ["method", *(f"{short} ({told[task]})" for task, short in shown.items())]
    lines = [header + list(COSTS.values()), ["---"] * (len(header) + len(COSTS))]
    for method, row in rows["trec6"].items():
        scores = [_score(rows[task][method], boards[task]["headline_metric"]) for task in boards]
        lines.append([f"`{method}`", *scores, *(_cost(row["costs"][name]) for name in COSTS)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _score(row: dict[str, Any], metric: str) -> str:
    score = row["scores"][metric]
    return percent(score["mean"]) + (f" ± {percent(score['sd'])}" if row["n_seeds"] > 1 else "")


def _cost(cost: dict[str, Any]) -> str:
    return show(cost["value"], cost["unit"])


if __name__ == "__main__":
    print(table())
