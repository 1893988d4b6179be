"""Conversion of annotation tools' character spans to words and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from graftwork.errors import DataError, clip
from graftwork.targets.tag_spans import BEGIN, INSIDE, OUTSIDE
from graftwork.targets.words import cut_words, word_places


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of a text: start and end character (exclusive), type, and its location in the file."""

    start: int
    end: int
    type: str
    where: str


@dataclass(frozen=True)
class TaggedText:
    """The words of a text and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    rounded: int  # number of spans with a border inside a word, widened to whole words

    @property
    def cells(self) -> dict[str, tuple[str, ...]]:
        """The words and tags by column."""
        return {"tokens": self.words, "tags": self.tags}


def tagged(text: str, marks: Sequence[Mark]) -> TaggedText:
    """Split `text` into words and tag them by its `marks`, the first word of each B-TYPE, the others I-TYPE.

    Raises `DataError` for a span that lies outside the text, holds no word, or shares a word with another.
    """
    words = cut_words(text)
    places = word_places(words, text)
    tags, owner = [OUTSIDE] * len(words), dict[int, Mark]()
    rounded = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        if not (0 <= mark.start < mark.end <= len(text) and mark.type.strip()):
            _refuse(mark, text, f"it must start before its end, end at {len(text)} at most, and have a type")
        inside = [at for at, (start, end) in enumerate(places) if start < mark.end and end > mark.start]
        if not inside:
            _refuse(mark, text, "it holds no word")
        for at in inside:
            if at in owner:
                _refuse_overlap(owner[at], mark, text)
            owner[at] = mark
            tags[at] = (INSIDE if at > inside[0] else BEGIN) + mark.type
        rounded += places[inside[0]][0] < mark.start or places[inside[-1]][1] > mark.end
    return TaggedText(words, tuple(tags), rounded)


def _refuse(mark: Mark, text: str, why: str) -> NoReturn:
    raise DataError(
        f"the span cannot be tagged: {why}",
        where=mark.where,
        got=f"{clip(mark.type)} from {mark.start} to {mark.end}, {clip(text[max(0, mark.start) : max(0, mark.end)])}",
        expected="offsets that count characters (not bytes) from 0, the end one after the last",
        do="mend the span or remove it",
    )


def _refuse_overlap(first: Mark, second: Mark, text: str) -> NoReturn:
    told = [
        f"{mark.type!r} from {mark.start} to {mark.end}, {clip(text[mark.start : mark.end])}"
        for mark in (first, second)
    ]
    raise DataError(
        "two spans share a word",
        where=second.where,
        got=" and ".join(told),
        expected="spans that lie apart: a word has one tag",
        do="keep one of them, or make a file for each sort of span",
    )
