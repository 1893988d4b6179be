"""Spans by characters become tags of words; what no tag can say is an error with its place."""

from __future__ import annotations

import pytest

from graftwork.data.readers.character_offsets import Mark, tagged
from graftwork.errors import DataError

TEXT = "Ann Lee, of New York-City."


def mark(start: int, end: int, kind: str = "LOC") -> Mark:
    return Mark(start, end, kind, "a.ann:3")


def test_whole_words() -> None:
    found = tagged(TEXT, [mark(12, 25), mark(0, 7, "PER")])
    assert found.words == ("Ann", "Lee", ",", "of", "New", "York", "-", "City", ".")
    assert found.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "O")
    assert found.rounded == 0


def test_borders_inside_words_are_widened_and_counted() -> None:
    found = tagged(TEXT, [mark(1, 3), mark(12, 18)])
    assert found.tags[:2] == ("B-LOC", "O")
    assert found.tags[4:6] == ("B-LOC", "I-LOC")
    assert found.rounded == 2


@pytest.mark.parametrize(
    ("marks", "what"),
    [
        ([mark(0, 40)], "end at 26 at most"),
        ([mark(5, 5)], "start before its end"),
        ([mark(0, 3, " ")], "a type"),
        ([mark(3, 4)], "it holds no word"),
        ([mark(0, 7), mark(4, 7, "PER")], "two spans share a word"),
        ([mark(0, 5), mark(5, 7, "PER")], "two spans share a word"),
    ],
)
def test_what_no_tag_can_say(marks: list[Mark], what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        tagged(TEXT, marks)
    assert caught.value.where == "a.ann:3"
    assert caught.value.do
