"""Abbreviations and what they stand for, found in the text that explains them (Schwartz & Hearst 2003).

*A simple algorithm for identifying abbreviation definitions in biomedical text*, Pacific Symposium on Biocomputing 8,
written from the paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SHORTEST, LONGEST = 2, 10  # characters of a short form
MOST_WORDS = 2  # of a short form
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9(])|\n+")
_BRACKETS = {"(": ")", "[": "]"}


class Definition(NamedTuple):
    """A short form and the long form that it stands for, as characters `start … end - 1` of the text."""

    short: str
    long: str
    start: int
    end: int


def definitions(text: str) -> list[Definition]:
    """What the text defines as `long form (short form)` or `short form (long form)`, in order."""
    found = []
    for start, sentence in _sentences(text):
        for opening, inside in _in_brackets(sentence):
            pair = _defined(sentence, opening, inside)
            if pair is not None:
                short, first, last = pair
                found.append(Definition(short, sentence[first:last], start + first, start + last))
    return found


def is_short_form(text: str) -> bool:
    """Two to ten characters in at most two words, a letter among them, the first of them a letter or a digit."""
    return (
        SHORTEST <= len(text) <= LONGEST
        and len(text.split()) <= MOST_WORDS
        and any(char.isalpha() for char in text)
        and text[0].isalnum()
    )


def best_long_form(short: str, before: str) -> int | None:
    """Where in `before` the shortest long form for `short` begins that ends where `before` does; None if there is none.

    From their ends on, every letter and digit of `short` is looked for in `before`, in order; the first one must begin
    a word.
    """
    at = len(before)
    for place in range(len(short) - 1, -1, -1):
        wanted = short[place].lower()
        if not wanted.isalnum():
            continue
        at -= 1
        while at >= 0 and (before[at].lower() != wanted or (place == 0 and at > 0 and before[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return None
    return before.rfind(" ", 0, at) + 1 if at > 0 else 0


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """First character and text of every sentence."""
    start = 0
    for border in _SENTENCE.finditer(text):
        yield start, text[start : border.start()]
        start = border.end()
    yield start, text[start:]


def _in_brackets(sentence: str) -> Iterator[tuple[int, str]]:
    """Where a bracket opens after a space, and what stands in it."""
    for opening, char in enumerate(sentence):
        if char in _BRACKETS and opening > 0 and sentence[opening - 1] == " ":
            closing = _closing(sentence, opening)
            if closing is not None:
                yield opening, sentence[opening + 1 : closing]


def _closing(sentence: str, opening: int) -> int | None:
    """Where the bracket that opens there is closed."""
    own, depth = sentence[opening], 0
    for place in range(opening, len(sentence)):
        depth += (sentence[place] == own) - (sentence[place] == _BRACKETS[own])
        if depth == 0:
            return place
    return None


def _defined(sentence: str, opening: int, inside: str) -> tuple[str, int, int] | None:
    """Short form, and first character of the long form and the one behind it, or None."""
    content = re.split(r"[,;] | or ", inside, maxsplit=1)[0].strip()  # what follows is a remark on it
    if is_short_form(content):
        end = opening - 1
        words = _limit(content)
        begin = _last_words(sentence[:end], words)
        first = best_long_form(content, sentence[begin:end])
        return _checked(sentence, content, begin + first, end) if first is not None else None
    short = sentence[: opening - 1].split(" ")[-1]
    if len(inside.split()) > MOST_WORDS and is_short_form(short):
        first = best_long_form(short, inside)
        start = opening + 1
        return _checked(sentence, short, start + first, start + len(inside)) if first is not None else None
    return None


def _limit(short: str) -> int:
    """How many words a long form may have."""
    characters = sum(char.isalnum() for char in short)
    return min(characters + 5, characters * 2)


def _last_words(text: str, count: int) -> int:
    """Where the last `count` words of `text` begin."""
    begin = len(text)
    for _ in range(count):
        begin = text.rfind(" ", 0, max(0, begin - 1)) + 1
        if begin == 0:
            break
    return begin


def _checked(sentence: str, short: str, start: int, end: int) -> tuple[str, int, int] | None:
    """Unless the long form is no longer than the short form, has too many words, or has the short form as a word."""
    start += sentence[start] in _BRACKETS and _closing(sentence[start:end], 0) is None  # it opens around both forms
    long = sentence[start:end]
    words = re.split(r"[\s-]+", long)
    if len(long) <= len(short) or len(words) > _limit(short) or short in words:
        return None
    return short, start, end
