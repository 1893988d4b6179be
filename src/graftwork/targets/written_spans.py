"""Generated answers in passages: locating a text, dividing a long passage, and logits for generated answers.

A text that is not in the passage word by word is compared as in the evaluation of SQuAD: without case, punctuation of
ASCII and articles (Rajpurkar et al. 2016, arXiv:1606.05250).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged
from graftwork.targets.answer_scores import normalised, words_with_places
from graftwork.targets.passages import Passage, Passages, part_of
from graftwork.targets.words import cut_words

ALIKE = 0.5  # minimum F1 of words between a text and the span taken for it
SHARED = 4  # parts share 1 / SHARED of their words with the next
FEWEST = 16  # words of a part: if a question leaves space for fewer, its passage is not divided
APART = math.log(2)  # the logit of every other word is at least this much lower than that of the written answer
NOWHERE = 20.0  # the best span scores at least this much below "no answer", if a text is not found
LEAST_SHARE = 1e-9  # of the probability, for all other words


def span_of(text: str, passage: Passage, question: str) -> tuple[tuple[int, int], float] | None:
    """Locate a text: return its first and last word, and 1.0; else the most similar span and its F1 of words.

    Of several places it is the one nearest to the words of the question, of equals the first. None: nothing is similar.
    """
    places, likeness = occurrences(text, passage), 1.0
    if not places:
        places, likeness = most_alike(text, passage)
    spans = list(dict.fromkeys(passage.words_at(*place) for place in places))
    return (nearest(spans, question, passage), likeness) if spans else None


def occurrences(text: str, passage: Passage) -> list[tuple[int, int]]:
    """Return the character offsets (start, end) of all occurrences of a text, by the first of three rules to find any.

    Whole words as written; words that are equal when normalised; the text in any case, also inside words.
    """
    text = text.strip()
    places = [found.span() for found in re.finditer(re.escape(text), passage.text, re.IGNORECASE)] if text else []
    starts, ends = set(passage.starts), set(passage.ends)
    same = [(start, end) for start, end in places if passage.text[start:end] == text]
    whole = [(start, end) for start, end in same if start in starts and end in ends]
    if whole:
        return whole
    wanted, words = normalised(text).split(), words_with_places(passage.text)
    told, size = [word for word, _, _ in words], len(wanted)
    alike = [place for place in range(len(words) - size + 1) if size and told[place : place + size] == wanted]
    return [(words[place][1], words[place + size - 1][2]) for place in alike] or places


def most_alike(text: str, passage: Passage) -> tuple[list[tuple[int, int]], float]:
    """Return the character offsets of the spans with the highest F1 of words with a text, and that F1; none below
    `ALIKE`."""
    wanted, words = Counter(normalised(text).split()), words_with_places(passage.text)
    shared = [place for place, (word, _, _) in enumerate(words) if word in wanted]
    size, best = wanted.total(), dict[tuple[int, int], float]()
    for number, first in enumerate(shared):
        within, common = Counter[str](), 0
        for last in shared[number:]:
            if last - first >= 3 * size:  # longer ones have an F1 below `ALIKE`
                break
            within[words[last][0]] += 1
            common += within[words[last][0]] <= wanted[words[last][0]]
            best[words[first][1], words[last][2]] = 2 * common / (size + last - first + 1)
    highest = max(best.values(), default=0.0)
    return ([place for place, like in best.items() if like == highest], highest) if highest >= ALIKE else ([], 0.0)


def nearest(spans: Sequence[tuple[int, int]], question: str, passage: Passage) -> tuple[int, int]:
    """Return the span of words nearest to the words of the question: each of them counts 1 / (1 + its distance)."""
    asked = {normalised(word) for word in cut_words(question)} - {""}
    mentions: dict[str, list[int]] = {}
    for place, word in enumerate(map(normalised, passage.words)):
        if word in asked:
            mentions.setdefault(word, []).append(place)

    def closeness(span: tuple[int, int]) -> float:
        away = (min(max(span[0] - place, place - span[1], 0) for place in listed) for listed in mentions.values())
        return sum(1 / (1 + distance) for distance in away)

    return max(spans, key=closeness)


def parts_of(example: Example, fits: Callable[[Example], bool]) -> list[tuple[int, Example]]:
    """Divide a passage into overlapping parts that fit: return (index of the first word, question about the part).

    A part is as long as fits. If fewer than `FEWEST` words fit, the passage is left whole.
    """
    passage, words = Passages().of(example), len(example.inputs["words"])
    first, parts = 0, list[tuple[int, Example]]()

    def too_long(end: int) -> bool:
        return not fits(part_of(example, first, end, passage))

    while True:
        end = first + bisect_left(range(first + 1, words + 1), True, key=too_long)
        if end - first < min(FEWEST, words - first):
            return [(0, example)]
        parts.append((first, part_of(example, first, end, passage)))
        if end == words:
            return parts
        first = end - (end - first) // SHARED


def likely_spans(
    spans: Sequence[tuple[int, int] | None],
    chances: Sequence[float],
    silent: Sequence[float] | None,
    words: Sequence[int],
    longest: int,
) -> Ragged:
    """Return logits (W, 2) of N (first, last) spans, cut to `longest` words, with the log-probabilities of their texts.

    The start and end logits of a span, and of "no answer", add up to its log-probability. The remaining probability is
    spread over the other words, so that softmax(start) times softmax(end) is the probability of a text. If span and "no
    answer" are both likely it is lower, but at least about 4 / W^2. `words` are the numbers of words of the passages.
    """
    rows = []
    for place, (span, chance, count) in enumerate(zip(spans, chances, words, strict=True)):
        none = None if silent is None else silent[place] / 2
        if span is None:
            rows.append(_nowhere(count, none))
            continue
        left = 1 - math.exp(chance / 2) - (0.0 if none is None else math.exp(none))
        other = min(math.log(max(left, LEAST_SHARE) / max(1, count - 1)), chance / 2 - APART)
        own = np.full((count + 1, 2), other)
        own[1 + span[0], 0] = own[1 + min(span[1], span[0] + longest - 1), 1] = chance / 2
        own[0] = other if none is None else none
        rows.append(own)
    return Ragged(np.concatenate([np.zeros((0, 2)), *rows]), np.array(list(map(len, rows)), dtype=np.int64))


def _nowhere(count: int, none: float | None) -> NDArray[np.float64]:
    """Return the logits of a passage in which no answer was found: no word is likely.

    The probability that "no answer" leaves is put on a start after its end, which is no span, so that "no answer" wins.
    """
    own = np.full((count + 1, 2), 2 * (none or 0.0) - NOWHERE)
    own[0] = own[0] if none is None else none
    if count > 1:
        own[count, 0] = own[1, 1] = math.log(max(LEAST_SHARE, 1.0 if none is None else 1 - math.exp(none)))
    return own
