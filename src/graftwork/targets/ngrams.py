"""A rule for passage questions: the words around the longest n-gram that question and passage share.

The window baselines of machine comprehension (Hirschman et al. 1999, *Deep Read*; Richardson et al. 2013, *MCTest*)
score positions of a text by the words that they share with the question. Here it is the longest run of shared words.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graftwork.core.example import Example
from graftwork.targets.answer_scores import words_f1
from graftwork.targets.words import cut_words

STOPS = (".", "!", "?", "…")  # words that end a sentence
TRIED_ON = 2_000  # questions, at most
PLACES = ("behind", "before", "sentence", "rest")


@dataclass(frozen=True)
class AnswerWindow:
    """The part of the best sentence taken as the answer: `words` behind or before the shared n-gram, all, or the rest.

    The rest is its longest span without a word of the question and without a punctuation mark.
    """

    place: str  # one of `PLACES`
    words: int = 0  # maximum, for "behind" and "before"

    @classmethod
    def of(cls, stored: Tensor) -> AnswerWindow:
        """Decode `stored`."""
        place, words = stored.tolist()
        return cls(PLACES[place], words)

    @property
    def stored(self) -> Tensor:
        """(2,) int64: the index of `place` in `PLACES`, and `words`."""
        return torch.tensor([PLACES.index(self.place), self.words])


WINDOWS = (
    *(AnswerWindow(place, words) for place in ("behind", "before") for words in (1, 2, 3, 4, 6, 8)),
    AnswerWindow("rest"),
    AnswerWindow("sentence"),
)


def sentences(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first word and the end (exclusive) of every sentence; a stop ends one."""
    cuts = [place + 1 for place, word in enumerate(words) if word in STOPS]
    edges = [0, *(cut for cut in cuts if cut < len(words)), len(words)]
    return [(start, end) for start, end in itertools.pairwise(edges) if end > start]


def best_sentence(question: Sequence[str], words: Sequence[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the sentence with the longest n-gram of the question, and that n-gram, as (first word, end exclusive).

    Case is ignored. Among n-grams of equal length the sentence that shares more different words with the question
    wins, then the earlier one. Without any shared word the n-gram is empty, at the sentence's beginning.
    """
    asked, said = [word.lower() for word in question], [word.lower() for word in words]
    signs = {word for word in asked if is_sign(word)}
    best: tuple[int, int] = (-1, -1)
    chosen, shared = (0, len(words)), (0, 0)
    for start, end in sentences(said):
        run = longest_run(asked, said[start:end])
        key = (run[1] - run[0], len((set(asked) & set(said[start:end])) - signs))
        if key > best:
            best, chosen, shared = key, (start, end), (start + run[0], start + run[1])
    return chosen, shared


def longest_run(asked: Sequence[str], said: Sequence[str]) -> tuple[int, int]:
    """Return the longest run of words of `said` that is in `asked`, the first of equals; not only signs."""
    best, before = (0, 0), [0] * (len(asked) + 1)
    for place, word in enumerate(said):
        lengths = [0] * (len(asked) + 1)
        for other, asked_word in enumerate(asked):
            if word == asked_word:
                length = lengths[other + 1] = before[other] + 1
                start = place + 1 - length
                if length > best[1] - best[0] and not all(map(is_sign, said[start : place + 1])):
                    best = (start, place + 1)
        before = lengths
    return best


def answer_in(question: str, words: Sequence[str], window: AnswerWindow) -> tuple[int, int]:
    """Return the first and the last word of the answer of `window`."""
    asked = cut_words(question)
    return _within(asked, words, window, *best_sentence(asked, words))


def best_window(examples: Sequence[Example]) -> tuple[AnswerWindow, dict[str, float]]:
    """Return the window with the highest F1 on answerable questions, the first of equals, and all scores.

    Uses at most `TRIED_ON` of these examples, evenly spread; the right answers are their targets.
    """
    answered = [example for example in examples if example.target]
    tried = answered[:: max(1, -(-len(answered) // TRIED_ON))]
    scores = dict.fromkeys(WINDOWS, 0.0)
    for example in tried:
        asked, passage = cut_words(example.inputs["question"]), example.target.passage
        found = best_sentence(asked, passage.words)
        for window in WINDOWS:
            text = passage.between(*_within(asked, passage.words, window, *found))
            scores[window] += words_f1(example.target.texts, text, True) / len(tried)
    named = {f"{window.place} {window.words}".removesuffix(" 0"): score for window, score in scores.items()}
    return max(WINDOWS, key=lambda window: scores[window]), named


def _within(
    asked: Sequence[str], words: Sequence[str], window: AnswerWindow, sentence: tuple[int, int], shared: tuple[int, int]
) -> tuple[int, int]:
    """Return the answer of `window` in a sentence with a shared n-gram, without signs at its borders."""
    (start, end), (first, behind) = sentence, shared
    if window.place == "behind" and behind < end:
        start, end = behind, min(end, behind + window.words)
    elif window.place == "before" and first > start:
        start, end = max(start, first - window.words), first
    elif window.place == "rest":
        start, end = _longest_rest({word.lower() for word in asked}, words, start, end)
    while start < end - 1 and is_sign(words[start]):
        start += 1
    while start < end - 1 and is_sign(words[end - 1]):
        end -= 1
    return start, end - 1


def _longest_rest(asked: set[str], words: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return the longest span without words in `asked` or signs, the first of equals; else the whole sentence."""
    best, begun = (start, start), start
    for place in range(start, end + 1):
        if place == end or words[place].lower() in asked or is_sign(words[place]):
            if place - begun > best[1] - best[0]:
                best = (begun, place)
            begun = place + 1
    return best if best[1] > best[0] else (start, end)


def is_sign(word: str) -> bool:
    """Return whether the word consists of punctuation marks or other signs only."""
    return all(unicodedata.category(char)[0] in "PS" for char in word)
