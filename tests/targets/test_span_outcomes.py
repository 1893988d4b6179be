"""Which span of an answer stands for which span of the target."""

from __future__ import annotations

from typing import Any

from graftwork.core.outcome import MISSED, NOTHING, Outcome
from graftwork.targets.span_outcomes import span_outcomes


def span(label: str, start: int, end: int) -> dict[str, Any]:
    return {"label": label, "start": start, "end": end}


def test_an_equal_span_goes_before_one_that_overlaps_more() -> None:
    wanted = [span("A", 0, 4), span("A", 3, 20)]
    found = [span("A", 0, 20), span("A", 0, 4)]
    assert span_outcomes(wanted, found) == [Outcome("A", "A", True), Outcome("A", "A", False, "other borders")]


def test_every_span_is_used_once() -> None:
    assert span_outcomes([span("A", 0, 9)], [span("A", 0, 3), span("A", 4, 9)]) == [
        Outcome("A", "A", False, "other borders"), Outcome(NOTHING, "A", False),
    ]  # fmt: skip
    assert span_outcomes([span("A", 0, 3), span("B", 4, 9)], [span("B", 0, 3)]) == [
        Outcome("A", "B", False), Outcome("B", MISSED, False),
    ]  # fmt: skip


def test_neighbours_do_not_overlap() -> None:
    assert span_outcomes([span("A", 0, 3)], [span("A", 3, 5)]) == [
        Outcome("A", MISSED, False), Outcome(NOTHING, "A", False),
    ]  # fmt: skip
