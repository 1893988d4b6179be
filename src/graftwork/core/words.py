"""Words of a text: how one that is given whole is cut, and where each word stands."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from graftwork.core.example import Example, Input


def cut_words(text: str) -> tuple[str, ...]:
    """White space ends a word; every punctuation mark and sign is one by itself, but for those inside a number."""
    words: list[str] = []
    goes_on = False  # whether the next letter belongs to the last word
    for place, char in enumerate(text):
        if char.isspace():
            goes_on = False
        elif unicodedata.category(char)[0] in "PS" and not _in_number(text, place):
            words.append(char)
            goes_on = False
        elif goes_on:
            words[-1] += char
        else:
            words.append(char)
            goes_on = True
    return tuple(words)


def example_of(place: str, given: Input) -> Example:
    """An example called `place` of these words, or of those of a text."""
    if isinstance(given, str):
        return Example(place, {"words": cut_words(given)}, source=given)
    return Example(place, {"words": given})


def _in_number(text: str, place: int) -> bool:
    """Whether the sign at `place` is the point or comma of a number such as 3.5 or 1,000."""
    return text[place] in ".," and text[place - 1 : place].isdecimal() and text[place + 1 : place + 2].isdecimal()


def word_places(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """First character of each word in the `text` that it was cut from, and the one behind its last."""
    places, at = [], 0
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        places.append((start, at))
    return places
