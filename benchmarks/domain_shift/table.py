"""Print results/ as the table of the README: `python benchmarks/domain_shift/table.py`."""

from __future__ import annotations

from pathlib import Path

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Print a row per size and share."""
    print("| trained on / new | of another domain | alarms | AUC, mean | smallest that would show, mean |")
    print("| --- | --- | --- | --- | --- |")
    for one in read_json(RESULTS / "sst2.json")["found"]:
        share = f"{100 * one['share_of_another_domain']:.0f} % {one['other']}" if one["other"] else "none"
        alarms = f"{one['alarms']} of {one['trials']}"
        sizes, areas = f"{one['trained_on']:,} / {one['new']:,}", f"{one['auc']:.3f} | {one['smallest']:.3f}"
        print(f"| {sizes} | {share} | {alarms} | {areas} |")


if __name__ == "__main__":
    main()
