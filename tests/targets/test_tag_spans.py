"""Spans: what tags mark, read strictly and as the script of the CoNLL shared tasks does."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.core.ragged import Ragged
from graftwork.targets.tag_spans import marks_spans, mend_tags, spans_of

LABELS = ("B-X", "B-Y", "I-X", "I-Y", "O")


def found(tags: str, strict: bool) -> list[tuple[int, int, str]]:
    """`tags` separated by spaces, examples by `|`; spans as (first word, word behind, type)."""
    examples = [[LABELS.index(tag) for tag in part.split()] for part in tags.split("|")]
    spans = spans_of(Ragged.of(examples, np.int64), LABELS, strict)
    types = {LABELS.index(label): label[2:] for label in LABELS if label != "O"}
    listed = zip(spans.start.tolist(), spans.end.tolist(), spans.type.tolist(), strict=True)
    return [(start, end, types[kind]) for start, end, kind in listed]


@pytest.mark.parametrize(
    ("tags", "strict", "script"),
    [
        ("B-X I-X O B-Y", [(0, 2, "X"), (3, 4, "Y")], None),
        ("B-X B-X I-X", [(0, 1, "X"), (1, 3, "X")], None),
        ("B-X I-X | I-X O", [(0, 2, "X")], [(0, 2, "X"), (2, 3, "X")]),
        ("O I-X I-X O", [], [(1, 3, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X")], [(0, 1, "X"), (1, 3, "Y")]),
        ("I-X B-X I-X", [(1, 3, "X")], [(0, 1, "X"), (1, 3, "X")]),
        ("I-X I-Y I-X", [], [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("O | O O", [], None),
        ("B-X | B-X", [(0, 1, "X"), (1, 2, "X")], None),
    ],
)
def test_both_readings(
    tags: str, strict: list[tuple[int, int, str]], script: list[tuple[int, int, str]] | None
) -> None:
    assert found(tags, strict=True) == strict
    assert found(tags, strict=False) == (strict if script is None else script)


def test_mending_makes_the_readings_one() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        tags = random.choice(LABELS, 12).tolist()
        whole = " ".join(mend_tags(tags))
        assert found(whole, strict=True) == found(whole, strict=False) == found(" ".join(tags), strict=False)
    assert mend_tags(["I-X", "I-X", "I-Y", "O", "I-Y", "B-Y", "I-Y"]) == (
        "B-X", "I-X", "B-Y", "O", "B-Y", "B-Y", "I-Y",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "yes"),
    [(LABELS, True), (("O", "B-X"), True), (("O",), False), (("NOUN", "B"), False), (("B-X", "NOUN"), False)],
)
def test_which_tags_mark_spans(labels: tuple[str, ...], yes: bool) -> None:
    assert marks_spans(labels) == yes
