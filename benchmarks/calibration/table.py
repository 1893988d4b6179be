"""Print results/ as the table of the README: `python benchmarks/calibration/table.py`."""

from __future__ import annotations

from pathlib import Path

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Print a row per set, method and seed."""
    print(
        "| set | method | seed | accuracy | temperature | error before | after | change [95 %] | loss before | after |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(RESULTS.glob("*.json")):
        one = read_json(path)
        before, after, change = one["test"]["before"], one["test"]["after"], one["change"]
        print(
            f"| {one['set']} | {one['method']} | {one['seed']} | {100 * one['accuracy']:.1f} "
            f"| {one['temperature']:.2f} | {100 * before['ece']:.1f} | {100 * after['ece']:.1f} "
            f"| {100 * (after['ece'] - before['ece']):+.1f} [{100 * change['low']:+.1f}, {100 * change['high']:+.1f}] "
            f"| {before['nll']:.3f} | {after['nll']:.3f} |"
        )


if __name__ == "__main__":
    main()
