"""Segmentation of a text into words, and the position of each word.

Unspaced scripts write no space between words: each of their letters is a word. Combining marks, such as the vowel signs
of Hindi, belong to the character before them, though Python's `\\w` has none of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain

from graftwork.core.example import Example, Input


def _ranges(blocks: Sequence[tuple[int, int]], categories: Iterable[str]) -> str:
    """Return the characters of the blocks (first, last) in the Unicode categories, as a regex class body."""
    wanted, found = set(categories), list[list[int]]()
    for code in chain.from_iterable(range(first, last + 1) for first, last in blocks):
        if unicodedata.category(chr(code)) in wanted:
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # whole blocks
_OTHERS = (  # Thai and Lao, Burmese, Khmer, Japanese
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3000, 0x30FF), (0x31F0, 0x31FF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F),
)  # fmt: skip
_MARKED = (  # all but U+20E3 and U+FE00 to U+FE0F, which turn a digit or sign into an emoji
    (0x0300, 0x20E2), (0x20E4, 0x33FF), (0xA000, 0xABFF), (0xFB00, 0xFDFF), (0xFE10, 0xFE2F), (0x10000, 0x1EFFF),
    (0xE0100, 0xE01EF),
)  # fmt: skip
UNSPACED = _HAN + _ranges(_OTHERS, ("Lo", "Lm", "Nl"))  # letters; digits of these scripts form numbers as usual
MARKS = _ranges(_MARKED, ("Mn", "Mc", "Me"))

# Regular expressions. Possessive: no backtracking. The look-ahead lets ASCII skip the long class.
_BEHIND = rf"(?![\0-\u02ff])[{MARKS}][{MARKS}\u200c\u200d]*+"  # a joiner after a mark continues the word
LETTERS = rf"[^\W{UNSPACED}]++(?:{_BEHIND}[^\W{UNSPACED}]*+)*+"  # letters and digits of all other scripts
LETTER = rf"[{UNSPACED}](?:{_BEHIND})?+"  # one of an unspaced script
WORD = rf"{LETTERS}|{LETTER}"
TOKEN = rf"{WORD}|[^\w\s](?:{_BEHIND})?+"  # a word, or a punctuation mark
APART = re.compile(rf"({LETTER})")
_MARK = re.compile(f"[{MARKS}]")
FIRST_RULE, RULE = 1, 2  # versions of segmentation; the first handled neither unspaced scripts nor marks
_NOT_OF_THE_FIRST = re.compile(f"[{UNSPACED}{MARKS}]")
UNSPACED_APART = "unspaced_apart"  # fact of a method: its words are cut this way; absent from older modules


def cut_words(text: str) -> tuple[str, ...]:
    """Cut a text into words at white space; every punctuation mark or sign outside a number is a word by itself.

    Every letter of an unspaced script is a word, and a combining mark belongs to its base character.
    """
    words: list[str] = []
    goes_on = False  # True if the next letter belongs to the last word
    for place, char in enumerate(text):
        if char.isspace():
            goes_on = False
            continue
        if unicodedata.category(char)[0] in "PS" and not _in_number(text, place):
            words.append(char)
            goes_on = False
        elif goes_on or (_MARK.match(char) and place and not text[place - 1].isspace()):
            words[-1] += char
        else:
            words.append(char)
            goes_on = True
    return tuple(apart(words))


def rule_of(texts: Iterable[str]) -> int:
    """Return `RULE`, or `FIRST_RULE` if both cut these texts alike."""
    return RULE if any(not text.isascii() and _NOT_OF_THE_FIRST.search(text) for text in texts) else FIRST_RULE


def apart(words: Iterable[str]) -> list[str]:
    """Split words at letters of unspaced scripts, each of which becomes a word."""
    return [part for word in words for part in APART.split(word) if part]


def example_of(place: str, given: Input) -> Example:
    """Build an example with the id `place` from words, or from a text cut into words."""
    if isinstance(given, str):
        return Example(place, {"words": cut_words(given)}, source=given)
    return Example(place, {"words": given})


def _in_number(text: str, place: int) -> bool:
    """Return whether the sign at `place` is the point or comma of a number such as 3.5 or 1,000."""
    return text[place] in ".," and text[place - 1 : place].isdecimal() and text[place + 1 : place + 2].isdecimal()


def word_places(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return the start and end (exclusive) of each word in the `text` that it was cut from."""
    places, at = [], 0
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        places.append((start, at))
    return places
