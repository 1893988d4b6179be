"""How like two answers are, as texts: exact match and F1 of words (Rajpurkar et al. 2016, arXiv:1606.05250).

Case, ASCII punctuation, the articles a, an and the, and white space don't count. An answer is scored against the right
answer that it is most like. A question without an answer has the empty text for one (2018, arXiv:1806.03822).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """What of an answer counts: in lower case, without punctuation, then without articles, one space between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(golds: Sequence[str], found: str, may_be_none: bool) -> float:
    """1 where `found` is one of `golds`, else 0."""
    return float(normalised(found) in map(normalised, _right(golds, may_be_none)))


def words_f1(golds: Sequence[str], found: str, may_be_none: bool) -> float:
    """F1 of the words that `found` shares with the gold where that is highest, 0 … 1."""
    words = normalised(found).split()
    return max(_f1(normalised(gold).split(), words, may_be_none or not golds) for gold in _right(golds, may_be_none))


def _right(golds: Sequence[str], may_be_none: bool) -> list[str]:
    """The answers to score against; among questions that may have none, golds of which nothing counts are none."""
    kept = [gold for gold in golds if normalised(gold)] if may_be_none else list(golds)
    return kept or [""]


def _f1(gold: list[str], found: list[str], may_be_none: bool) -> float:
    """Among questions that may have none, no words equal no words; otherwise nothing is shared, and F1 is 0."""
    if may_be_none and not (gold and found):
        return float(gold == found)
    shared = (Counter(gold) & Counter(found)).total()
    return 2 * shared / (len(gold) + len(found)) if shared else 0.0
