"""Abbreviations and their long forms, found in the text that defines them (Schwartz & Hearst 2003).

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
    """A short form and its long form, which is characters `start … end - 1` of the text."""

    short: str
    long: str
    start: int
    end: int


def definitions(text: str) -> list[Definition]:
    """Find all definitions `long form (short form)` or `short form (long form)` in the text, in order."""
    found = []
    for start, sentence in _sentences(text):
        for opening, inside in _in_brackets(sentence):
            pair = _definition_at(sentence, opening, inside)
            if pair is not None:
                short, first, last = pair
                found.append(Definition(short, sentence[first:last], start + first, start + last))
    return found


def is_short_form(text: str) -> bool:
    """Return whether it has 2 to 10 characters in at most 2 words, a letter, and a letter or digit first."""
    return (
        SHORTEST <= len(text) <= LONGEST
        and len(text.split()) <= MOST_WORDS
        and any(char.isalpha() for char in text)
        and text[0].isalnum()
    )


def best_long_form(short: str, before: str) -> int | None:
    """Return where the shortest long form of `short` begins that ends where `before` ends; None if there is none.

    From the end backwards, every letter and digit of `short` is matched in `before`, in order; the first one must begin
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
    """Yield the first character and the text of every sentence."""
    start = 0
    for border in _SENTENCE.finditer(text):
        yield start, text[start : border.start()]
        start = border.end()
    yield start, text[start:]


def _in_brackets(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield the position and content of every bracket that opens after a space."""
    for opening, char in enumerate(sentence):
        if char in _BRACKETS and opening > 0 and sentence[opening - 1] == " ":
            closing = _closing(sentence, opening)
            if closing is not None:
                yield opening, sentence[opening + 1 : closing]


def _closing(sentence: str, opening: int) -> int | None:
    """Return the position of the bracket that closes the one at `opening`, or None."""
    own, depth = sentence[opening], 0
    for place in range(opening, len(sentence)):
        depth += (sentence[place] == own) - (sentence[place] == _BRACKETS[own])
        if depth == 0:
            return place
    return None


def _definition_at(sentence: str, opening: int, inside: str) -> tuple[str, int, int] | None:
    """Return the short form and the start and end of the long form, or None."""
    content = re.split(r"[,;] | or ", inside, maxsplit=1)[0].strip()  # the rest is a remark
    if is_short_form(content):
        end = opening - 1
        words = _limit(content)
        begin = _last_words(sentence[:end], words)
        first = best_long_form(content, sentence[begin:end])
        return _checked_definition(sentence, content, begin + first, end) if first is not None else None
    short = sentence[: opening - 1].split(" ")[-1]
    if len(inside.split()) > MOST_WORDS and is_short_form(short):
        first = best_long_form(short, inside)
        start = opening + 1
        return _checked_definition(sentence, short, start + first, start + len(inside)) if first is not None else None
    return None


def _limit(short: str) -> int:
    """Return the maximum number of words of a long form."""
    characters = sum(char.isalnum() for char in short)
    return min(characters + 5, characters * 2)


def _last_words(text: str, count: int) -> int:
    """Return where the last `count` words of `text` begin."""
    begin = len(text)
    for _ in range(count):
        begin = text.rfind(" ", 0, max(0, begin - 1)) + 1
        if begin == 0:
            break
    return begin


def _checked_definition(sentence: str, short: str, start: int, end: int) -> tuple[str, int, int] | None:
    """Return the definition; None if `long` is not longer, has too many words, or contains `short` as a word."""
    start += sentence[start] in _BRACKETS and _closing(sentence[start:end], 0) is None  # it encloses both forms
    long = sentence[start:end]
    words = re.split(r"[\s-]+", long)
    if len(long) <= len(short) or len(words) > _limit(short) or short in words:
        return None
    return short, start, end
