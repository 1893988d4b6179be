"""The data report in words: a table of the splits, and what to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.core.in_memory import in_python

WIDTH = 28  # characters of the first column
MOST_CLASSES = 20  # printed at most; the JSON has all


def lines_in_python(found: Mapping[str, Any]) -> list[str]:
    """Format a data report as `report_lines`, with settings as arguments of Python."""
    return [in_python(line) for line in report_lines(found)]


def report_lines(found: Mapping[str, Any]) -> list[str]:
    """Format a data report: a table of the splits, classes, lengths, cues, then the warnings."""
    splits = list(found["rows"])
    lines = [f"{found['task']['name']} · {found['task']['kind']} · {found['splits']}", ""]
    lines.append(f"  {'':<{WIDTH}}" + "".join(f"{name:>12}" for name in splits))
    lines += [_row(title, counts, splits) for title, counts in _counts(found).items()]
    if any(found["classes"].values()):
        lines += ["", *_classes(found["classes"], "words" if "answers" in found else "rows")]
    if "positive" in found:
        lines += [f"  f1 is of {found['positive']['label']!r}, {found['positive']['chosen']}"]
    if "media" not in found:
        lines += ["", f"lengths in {found['lengths']['unit']}", *_lengths(found["lengths"], splits)]
    cues = found.get("cues", {})
    if cues.get("words"):
        lines += ["", f"words that at least double the odds of a label, of train: {cues['words']:,}"]
        lines += [_cue(cue) for cue in cues["strongest"]]
    lines += ["", "what to know"] + [f"  {warning}" for warning in found["warnings"]]
    return lines if found["warnings"] else [*lines[:-1], "Nothing to warn of."]


def _counts(found: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    """Return title -> split -> count, for everything that is counted by split."""
    near = found.get("near_duplicates")
    rows = {"rows": found["rows"], "repeat an earlier row": found["duplicates_within"]}
    rows |= {"nearly repeat another row": near["within"]} if near else {}
    rows["same as a row of train"] = found["duplicates_across"]["rows"]
    rows |= {"nearly a row of train": near["across"]["rows"]} if near else {}
    rows["same as a row of validation"] = {"test": found["test_in_validation"]["rows"]}
    rows |= {"nearly a row of validation": {"test": near["test_in_validation"]["rows"]}} if near else {}
    if "media" not in found:
        rows["without letters or digits"] = found["without_letters"]
    for key, title in {
        "median_words": "words of a target, median",
        "max_words": "words of a target, at most",
        "distinct": "distinct targets",
        "copies": "targets that are the source",
    }.items():
        if "texts" in found:
            rows[title] = {name: facts[key] for name, facts in found["texts"].items()}
    by_backbone = {"cut": "cut by the backbone", "windows": "read in several windows"}
    return rows | {title: found[key] for key, title in by_backbone.items() if key in found}


def _row(title: str, counts: Mapping[str, int], splits: list[str]) -> str:
    return f"  {title:<{WIDTH}}" + "".join(f"{counts[name]:>12,}" if name in counts else f"{'':>12}" for name in splits)


def _classes(classes: Mapping[str, Mapping[str, int]], unit: str) -> list[str]:
    """Format the frequency of each label in each split, labels most frequent in train first."""
    train = classes["train"]
    listed = sorted(train, key=lambda label: -train[label])[:MOST_CLASSES]
    more = len(train) - len(listed)
    lines = [f"classes: {len(train):,}, {unit} of each"]
    lines += [
        _row(_short(label), {name: found[label] for name, found in classes.items()}, list(classes)) for label in listed
    ]
    return lines + ([f"  and {more:,} with fewer"] if more else [])


def _short(label: str) -> str:
    """Return the label quoted and truncated to the width of its column."""
    return repr(label) if len(repr(label)) < WIDTH else f"{repr(label)[: WIDTH - 2]}…"


def _lengths(lengths: Mapping[str, Any], splits: list[str]) -> list[str]:
    """Return a line for every length bin that is not empty."""
    bins = [name for name in lengths[splits[0]] if any(lengths[split][name] for split in splits)]
    return [_row(name, {split: lengths[split][name] for split in splits}, splits) for name in bins]


def _cue(cue: Mapping[str, Any]) -> str:
    side = "" if cue["side"] == "text" else f" in {cue['side']}"
    return (
        f"  {cue['word']!r}{side}: {cue['with_label']:,} of {cue['rows']:,} rows are {cue['label']}, at least "
        f"{cue['share_at_least']:.0%}; of all rows {cue['share_of_all_rows']:.0%}"
    )
