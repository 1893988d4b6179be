"""Passages: texts that are asked about, and the stretches of them that answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from graftwork.core.example import Example
from graftwork.targets.words import cut_words, word_places


@dataclass(frozen=True, eq=False)
class Passage:
    """A text and its words; one object for all questions about it."""

    text: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Passage:
        """Cut into words as `cut_words` does."""
        return cls(text, cut_words(text))

    @cached_property
    def starts(self) -> list[int]:
        """The first character of every word."""
        return [start for start, _ in self._places]

    @cached_property
    def ends(self) -> list[int]:
        """The character behind every word."""
        return [end for _, end in self._places]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return word_places(self.words, self.text)

    def between(self, first: int, last: int) -> str:
        """The text from word `first` to word `last`, both included."""
        return self.text[self.starts[first] : self.ends[last]]

    def words_at(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last word that the characters `start … end - 1` touch: borders inside words go outward."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end) - 1


class Gold(NamedTuple):
    """A right answer."""

    text: str
    start: int  # its first character in the passage


class Golds(tuple[Gold, ...]):
    """The right answers to one question, none where it has no answer, with the passage that they stand in.

    Equal to, and written as, a plain tuple of them.
    """

    passage: Passage

    def __new__(cls, golds: Iterable[Gold], passage: Passage) -> Golds:
        """Of `passage`."""
        made = super().__new__(cls, golds)
        made.passage = passage
        return made

    @property
    def texts(self) -> list[str]:
        """What metrics compare."""
        return [gold.text for gold in self]


def question_of(place: str, question: str, passage: Passage, golds: Golds | None = None) -> Example:
    """An example called `place`."""
    return Example(place, {"question": question, "words": passage.words}, golds, source=passage.text)
