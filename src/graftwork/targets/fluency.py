"""Faults of generated texts that similarity scores do not show: unsupported words and numbers, repeats, empty texts.

A triple of words or a number that is neither in the source nor in any training target is new: it may be right, but
hallucinations are among these (Maynez et al. 2020, arXiv:2005.00661).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graftwork.targets.words import WORD

ORDER = 3  # words of an n-gram
_WORD = re.compile(WORD)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
Triple = tuple[str, ...]


@dataclass(frozen=True)
class KnownTriples:
    """The triples of words and the numbers of some texts."""

    triples: frozenset[Triple]
    numbers: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> KnownTriples:
        """Collect the triples and numbers of all texts."""
        triples, numbers = set[Triple](), set[str]()
        for text in texts:
            triples.update(_triples(text))
            numbers.update(_NUMBER.findall(text))
        return cls(frozenset(triples), frozenset(numbers))


def fluency(sources: Sequence[str], texts: Sequence[str], trained: KnownTriples) -> dict[str, int]:
    """Count texts, those that are empty and those that repeat a triple, all triples and numbers, and the new ones."""
    found = dict.fromkeys(("texts", "empty", "repeating", "triples", "new_triples", "numbers", "new_numbers"), 0)
    for source, text in zip(sources, texts, strict=True):
        own, triples, numbers = KnownTriples.of([source]), _triples(text), _NUMBER.findall(text)
        found["texts"] += 1
        found["empty"] += not text.strip()
        found["repeating"] += len(set(triples)) < len(triples)
        found["triples"] += len(triples)
        found["new_triples"] += sum(not (one in own.triples or one in trained.triples) for one in triples)
        found["numbers"] += len(numbers)
        found["new_numbers"] += sum(not (one in own.numbers or one in trained.numbers) for one in numbers)
    return found


def _triples(text: str) -> list[Triple]:
    words = _WORD.findall(text.casefold())
    return [tuple(words[place : place + ORDER]) for place in range(len(words) - ORDER + 1)]
