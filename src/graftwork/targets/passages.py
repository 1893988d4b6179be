"""Passages that questions are about, and the spans of them that answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from graftwork.core.example import Example
from graftwork.targets.words import cut_words, word_places


@dataclass(frozen=True, eq=False)
class Passage:
    """A text and its words; one object is shared by all questions about it."""

    text: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Passage:
        """Cut a text into words with `cut_words`."""
        return cls(text, cut_words(text))

    @cached_property
    def starts(self) -> list[int]:
        """The first character of every word."""
        return [start for start, _ in self._places]

    @cached_property
    def ends(self) -> list[int]:
        """The end of every word: the position after its last character."""
        return [end for _, end in self._places]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return word_places(self.words, self.text)

    def between(self, first: int, last: int) -> str:
        """Return the text from word `first` to word `last`, both included."""
        return self.text[self.starts[first] : self.ends[last]]

    def words_at(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the last word that overlap the characters `start … end - 1`."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end) - 1


@dataclass
class Passages:
    """The passages of examples, each made once."""

    made: dict[str, Passage] = field(default_factory=dict)

    def of(self, example: Example) -> Passage:
        """Return the passage that a question is about."""
        text = read_by(example)
        return self.made.setdefault(text, Passage(text, example.inputs["words"]))


class Gold(NamedTuple):
    """A correct answer."""

    text: str
    start: int  # its first character in the passage


class Golds(tuple[Gold, ...]):
    """The correct answers to one question, empty if it has no answer, with the passage that contains them.

    Equal to, and serialised as, a plain tuple of them.
    """

    passage: Passage

    def __new__(cls, golds: Iterable[Gold], passage: Passage) -> Golds:
        """Make the answers, spans of `passage`."""
        made = super().__new__(cls, golds)
        made.passage = passage
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.passage

    @property
    def texts(self) -> list[str]:
        """The texts that metrics compare."""
        return [gold.text for gold in self]


def question_of(place: str, question: str, passage: Passage, golds: Golds | None = None) -> Example:
    """Build an example with the id `place`."""
    return Example(place, {"question": question, "words": passage.words}, golds, source=passage.text)


def read_by(example: Example) -> str:
    """Return the text that the words of an example were cut from; without it, the words with blanks between."""
    return example.source if example.source is not None else " ".join(example.inputs["words"])


def part_of(example: Example, first: int, end: int, passage: Passage) -> Example:
    """Return the same question about the words `first … end - 1` of its passage."""
    words = example.inputs["words"][first:end]
    return Example(example.id, {**example.inputs, "words": words}, source=passage.between(first, end - 1))
