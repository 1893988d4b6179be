"""Matching of an answer's spans to a target's: right, of another type or other borders, missed, invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftwork.core.outcome import MISSED, NOTHING, Outcome

BORDERS = "other borders"
Span = Mapping[str, Any]


def span_outcomes(wanted: Sequence[Span], found: Sequence[Span]) -> list[Outcome]:
    """Pair equal spans (`label`, `start`, `end`), then those that overlap most; return the outcome of each span."""
    pairs = [
        ((a["start"], a["end"], a["label"]) == (b["start"], b["end"], b["label"]), _overlap(a, b), -i, -j)
        for i, a in enumerate(wanted)
        for j, b in enumerate(found)
        if _overlap(a, b) > 0
    ]
    paired: dict[int, int] = {}
    for _, _, i, j in sorted(pairs, reverse=True):
        if -i not in paired and -j not in paired.values():
            paired[-i] = -j
    outcomes = [_outcome(span, found[paired[i]]) if i in paired else Outcome(span["label"], MISSED, False)
                for i, span in enumerate(wanted)]  # fmt: skip
    made_up = [span for j, span in enumerate(found) if j not in paired.values()]
    return [*outcomes, *(Outcome(NOTHING, span["label"], False) for span in made_up)]


def _outcome(wanted: Span, found: Span) -> Outcome:
    same = (wanted["start"], wanted["end"]) == (found["start"], found["end"])
    right = same and wanted["label"] == found["label"]
    return Outcome(wanted["label"], found["label"], right, "" if same else BORDERS)


def _overlap(a: Span, b: Span) -> int:
    return int(min(a["end"], b["end"]) - max(a["start"], b["start"]))
