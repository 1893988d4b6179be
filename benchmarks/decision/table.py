"""Print the results of `run.py` as Markdown, the section *Results* of the README: `python table.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "decision.json"


def table(content: Mapping[str, Any]) -> str:
    """Format the rules on each group of boards, then the simulated boards."""
    parts = []
    for group, rules in content["rules"].items():
        tasks = next(iter(rules.values()))["tasks"]
        lines = [f"### {group.capitalize()}: {tasks}", "", *_rules(rules)]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, _simulated(content["simulated"])])


def _rules(rules: Mapping[str, Mapping[str, Any]]) -> list[str]:
    head = ("rule", "points lost", "at most", "on", "price of the choice", "spent", "stated")
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    for name, of in rules.items():
        stated = "–" if of["stated"] is None else f"{100 * of['stated']:.2f}"
        cells = (
            name, f"{100 * of['mean_loss']:.2f} ± {100 * of['standard_error']:.2f}", f"{100 * of['largest_loss']:.1f}",
            of["on"], f"{of['price']:.2f}", f"{of['spent']:.1f}", stated,
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _simulated(found: Mapping[str, Any]) -> str:
    lines = [
        f"### Simulated boards: {found['boards']:,}",
        "",
        f"The 90 % interval of the chosen method's shortfall holds the true one on {100 * found['covered']:.1f} %.",
        "",
        "| stated shortfall, points | boards | mean stated | mean true |",
        "| --- | --- | --- | --- |",
    ]
    for band in found["bands"]:
        upto = "" if band["to"] >= 1 else f" to {100 * band['to']:g}"
        stated, true = f"{100 * band['stated']:.2f}", f"{100 * band['true']:.2f}"
        lines.append(f"| {100 * band['from']:g}{upto} | {band['boards']:,} | {stated} | {true} |")
    return "\n".join([*lines, "", "![mean stated shortfall against the mean true one](results/calibration.svg)"])


if __name__ == "__main__":
    print(table(json.loads(RESULT.read_text(encoding="utf-8"))))
