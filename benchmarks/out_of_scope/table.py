"""Print results/ as the table of the README: `python benchmarks/out_of_scope/table.py`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Print a row per set, source and score: the mean over seeds, and the smallest and largest of them."""
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(RESULTS.glob("*.json")):
        one = read_json(path)
        for score, figures in one["scores"].items():
            found[one["set"], one["method"], score].append((figures["auroc"], figures["fpr95"]))
    print("| set | of | score | AUROC | lowest, highest | FPR at 95 % TPR | seeds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (name, method, score), figures in found.items():
        areas, false = np.array(figures).T * 100
        print(
            f"| {name} | {method} | {score} | {areas.mean():.1f} | {areas.min():.1f}, {areas.max():.1f} "
            f"| {false.mean():.1f} | {len(areas)} |"
        )


if __name__ == "__main__":
    main()
