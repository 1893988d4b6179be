"""Prints what is in `results/` as Markdown, the section *Results* of the README."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from graftwork.compare.curve_table import cells, header, saving_lines
from graftwork.units import show

HERE = Path(__file__).parent
NOTHING = "Not measured yet."


def tables(results: Path) -> str:
    """A table of scores and what transfer saves for each curve, then ours beside SetFit."""
    parts = [_curve(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(results.glob("*/curve.json"))]
    beside = {path.stem.removeprefix("setfit_"): path for path in sorted(results.glob("setfit_*.json"))}
    if beside:
        rows = [row for name, path in beside.items() for row in _beside(name, json.loads(path.read_text("utf-8")))]
        columns = ["data", "size", "contender", "draws", "accuracy", "lowest", "training", "of `contrastive`'s"]
        parts.append("### Beside SetFit\n\n" + _markdown([columns, *rows]))
    return "\n\n".join(parts) or NOTHING


def _curve(curve: dict[str, Any]) -> str:
    rows = [[f"`{method}`", *row] for method, row in cells(curve).items()]
    title = f"### {curve['task']['name']}: {curve['headline_metric']}, {curve['draws']} draws"
    listed = "\n".join(f"- {line}" for line in saving_lines(curve))
    return f"{title}\n\n{_markdown([['method', *header(curve)], *rows])}\n\n{listed}".rstrip()


def _beside(name: str, content: dict[str, Any]) -> list[list[str]]:
    """A row per size and contender, over the draws that all contenders of the size have."""
    rows = []
    for size in dict.fromkeys(row["size"] for row in content["rows"]):
        own = [row for row in content["rows"] if row["size"] == size]
        contenders = sorted({row["contender"] for row in own})
        draws = set.intersection(*({r["draw"] for r in own if r["contender"] == one} for one in contenders))
        found = {one: [r for r in own if r["contender"] == one and r["draw"] in draws] for one in contenders}
        seconds = {one: statistics.median(r["train_seconds"] for r in listed) for one, listed in found.items()}
        for one, listed in found.items():
            scores = [100 * row["accuracy"] for row in listed]
            spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            ratio = f"{seconds[one] / seconds['contrastive']:.2f}" if "contrastive" in seconds else "–"
            rows.append([
                name, size, f"`{one}`", str(len(listed)), f"{statistics.mean(scores):.1f}{spread}",
                f"{min(scores):.1f}", show(seconds[one], "s"), ratio,
            ])  # fmt: skip
    return rows


def _markdown(rows: list[list[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    print(tables(Path(sys.argv[1]) if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir() else HERE / "results"))
