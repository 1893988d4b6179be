"""Print results/ as the table of the README: `python benchmarks/label_errors/table.py`."""

from __future__ import annotations

import json
from pathlib import Path


def main() -> None:
    """Print a line per set: the share of flipped labels among the first suspects, mean (lowest to highest seed)."""
    results = [json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "results").glob("*.json"))]
    ways = list(dict.fromkeys(line["way"] for result in results for line in result["found"]))
    print(f"| set | classes | test | accuracy of the better method | {' | '.join(ways)} |")
    print(f"|{'---|' * (4 + len(ways))}")
    sums = dict.fromkeys(ways, 0.0)
    for result in results:
        cells = []
        for way in ways:
            hits = [100 * line["hits"] / result["first"] for line in result["found"] if line["way"] == way]
            mean = sum(hits) / len(hits)
            sums[way] += mean / len(results)
            cells.append(f"{mean:.1f} ({min(hits):.0f} to {max(hits):.0f})")
        best = 100 * max(result["accuracy"].values())
        print(f"| {result['set']} | {result['classes']} | {result['test']} | {best:.1f} | {' | '.join(cells)} |")
    print(f"| mean | | | | {' | '.join(f'{sums[way]:.1f}' for way in ways)} |")


if __name__ == "__main__":
    main()
