"""Print results/ as the tables of the README: `python benchmarks/data_report/table.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftwork.io.files import read_json

RESULTS = Path(__file__).parent / "results"
Result = Mapping[str, Any]
HELD_OUT = ("validation", "test")
WARNED = 3  # cues shown per data set


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def repeats(found: Sequence[Result]) -> str:
    """Format a row per data set: how many rows are duplicated, and where."""
    header = [
        "data", "train / validation / test", "repeated", "nearly", "held out: same in train", "nearly",
        "other target", "near and other target", "seconds",
    ]  # fmt: skip
    rows = []
    for one in found:
        near, across = one["near_within"], one["near_across"]
        rows.append([
            one["data"], " / ".join(f"{count:,}" for count in one["rows"].values()),
            f"{sum(one['duplicates_within'].values()):,}", f"{sum(near.values()):,}" if near else "–",
            _shares(one, one["duplicates_across"]), _shares(one, across) if across else "–",
            f"{one['conflicts']:,}", "–" if one["near_conflicts"] is None else f"{one['near_conflicts']:,}",
            f"{one['processor_seconds']:.1f}",
        ])  # fmt: skip
    return table(header, rows)


def _shares(one: Result, counts: Mapping[str, int]) -> str:
    """Format `12 (2.4 %)`, of validation and test together."""
    count, rows = sum(counts.values()), sum(one["rows"][name] for name in HELD_OUT)
    return f"{count:,} ({100 * count / rows:.1f} %)" if count else "0"


def cues(found: Sequence[Result]) -> str:
    """Format a row per data set and side with cues: their number, and the strongest."""
    rows = []
    for one in found:
        for side in dict.fromkeys(cue["side"] for cue in one["strongest_cues"]):
            own = [cue for cue in one["strongest_cues"] if cue["side"] == side][:WARNED]
            rows.append([one["data"], side, "; ".join(map(_told, own))])
    return table(["data", "side", "the words that give most rows away"], rows)


def _told(cue: Mapping[str, Any]) -> str:
    share = f"{100 * cue['with_label'] / cue['rows']:.0f} % of {cue['rows']:,} rows"
    word = cue["word"].replace("|", "\\|")
    return f"`{word}`: {share} are {cue['label']} (all: {100 * cue['share_of_all_rows']:.0f} %)"


def orders(found: Sequence[Result]) -> str:
    """Format the training files that are sorted, or ordered in runs of one label."""
    rows = [
        [one["data"], f"{one['order']['changes']:,}", f"{one['order']['changes_by_chance']:,.0f}",
         f"{one['order']['longest_stretch']:,}"]
        for one in found
        if one["order"] and one["order"]["changes"] < one["order"]["changes_by_chance"] / 2
    ]  # fmt: skip
    return table(["data", "changes of label", "by chance", "longest stretch"], rows)


def main() -> None:
    """Print all three tables."""
    read = [read_json(path) for path in sorted(RESULTS.glob("*.json"))]
    found = [one for one in read if one["status"] == "ok"]
    print("### Rows that stand twice\n\n" + repeats(found))
    print("\n### Words that give a class away\n\n" + cues([one for one in found if one["cues"]]))
    print("\n### Training files in stretches of one label\n\n" + orders(found))
    for one in read:
        if one["status"] != "ok":
            print(f"\n{one['data']}: {one['status']}: {one['error']}")


if __name__ == "__main__":
    main()
