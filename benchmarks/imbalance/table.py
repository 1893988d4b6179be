"""The tables of the README, from the committed result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "imbalance.json"


def table() -> str:
    """Return the tables of the README."""
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    lines = [
        "| set | method | seeds | macro F1 | balanced | difference | accuracy | balanced |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        f1, accuracy = row["weights"]["macro_f1"], row["weights"]["accuracy"]
        lines.append(
            f"| {row['set']} | `{row['method']}` | {row['seeds']} | {100 * f1['plain'][0]:.1f} | "
            f"{100 * f1['balanced'][0]:.1f} | {_told(f1)} | {100 * accuracy['plain'][0]:.1f} | "
            f"{100 * accuracy['balanced'][0]:.1f} |"
        )
    lines += ["", "| set | method | constant | most probable | least cost | saved | saved by least cost | difference |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for row in rows:
        costs, saved = row["costs"]["cost_per_row"], row["costs"]["saved"]
        lines.append(
            f"| {row['set']} | `{row['method']}` | {costs['cheapest_constant']:.2f} | {costs['argmax']:.2f} | "
            f"{costs['least_cost']:.2f} | {100 * saved['argmax']:.1f} | {100 * saved['least_cost']:.1f} | "
            f"{_told(row['costs'])} |"
        )
    return "\n".join(lines)


def _told(found: dict[str, Any]) -> str:
    delta, low, high = (f"{100 * value:.1f}" for value in found["difference"])
    return f"{delta} [{low}, {high}], {found['verdict']}"


if __name__ == "__main__":
    print(table())
