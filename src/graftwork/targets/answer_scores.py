"""The similarity of two answers as texts: exact match and F1 of words (Rajpurkar et al. 2016, arXiv:1606.05250).

Case, ASCII punctuation, the articles a, an and the, and white space are ignored. An answer is scored against the right
answer most similar to it. A question without an answer has the empty text as its answer (2018, arXiv:1806.03822).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_WORD = re.compile(r"\S+")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Normalise an answer: lower case, no punctuation, then no articles, one space between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def words_with_places(text: str) -> list[tuple[str, int, int]]:
    """Return the words of `normalised`, each with its first character and its end in the text as it stands."""
    origins = [place for place, char in enumerate(text) for _ in char.lower()]  # lower() may turn one letter into two
    lowered = zip(text.lower(), origins, strict=True)
    kept = [(char, place) for char, place in lowered if char not in string.punctuation]
    told = _ARTICLE.sub(lambda found: " " * len(found[0]), "".join(char for char, _ in kept))
    return [(found[0], kept[found.start()][1], kept[found.end() - 1][1] + 1) for found in _WORD.finditer(told)]


def exact_match(golds: Sequence[str], found: str, may_be_none: bool) -> float:
    """Return 1 if `found` is one of `golds` once normalised, else 0."""
    return float(normalised(found) in map(normalised, _right(golds, may_be_none)))


def words_f1(golds: Sequence[str], found: str, may_be_none: bool) -> float:
    """Return the highest F1 of words, 0 … 1, between `found` and any gold."""
    words = normalised(found).split()
    return max(_f1(normalised(gold).split(), words, may_be_none or not golds) for gold in _right(golds, may_be_none))


def _right(golds: Sequence[str], may_be_none: bool) -> list[str]:
    """Return the answers to score against; if questions may have none, golds that normalise to nothing are dropped."""
    kept = [gold for gold in golds if normalised(gold)] if may_be_none else list(golds)
    return kept or [""]


def _f1(gold: list[str], found: list[str], may_be_none: bool) -> float:
    """Return the F1 of words; two empty answers score 1 if questions may have none, else 0."""
    if may_be_none and not (gold and found):
        return float(gold == found)
    shared = (Counter(gold) & Counter(found)).total()
    return 2 * shared / (len(gold) + len(found)) if shared else 0.0
