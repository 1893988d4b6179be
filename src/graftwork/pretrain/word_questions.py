"""Intrinsic evaluation of word vectors: similarity ratings and analogies.

WordSim-353 (Finkelstein et al. 2002), SimLex-999 (Hill et al. 2015, arXiv:1408.3456), analogies (Mikolov et al. 2013,
arXiv:1301.3781), in gensim's file formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graftwork.core.metric import NORMAL_95, wilson
from graftwork.data.readers.lines import read_lines
from graftwork.errors import DataError, clip
from graftwork.pretrained.word_vector_table import WordVectors

AMONG = 300_000  # first (most frequent) words of a table, the candidates for an analogy
AT_ONCE = 256  # analogies per batch


@dataclass(frozen=True)
class Ratings:
    """Pairs of words with human similarity ratings, higher for more similar."""

    name: str
    pairs: Sequence[tuple[str, str]]
    rated: Sequence[float]


@dataclass(frozen=True)
class Analogies:
    """Analogies (a, b, c, d), a is to b as c is to d, by section."""

    name: str
    sections: dict[str, list[tuple[str, ...]]]


@dataclass(frozen=True)
class WordScore:
    """A score, its 95 % confidence interval, and the number of questions without unknown words."""

    name: str
    metric: str  # "spearman" or "accuracy"
    value: float | None  # None if nothing can be scored
    low: float | None
    high: float | None
    known: int
    questions: int


def read_questions(path: Path) -> Ratings | Analogies:
    """Read `word <tab> word <tab> number` per line, or sections `: name` of four words per line. `#` starts a comment.

    Raises `StorageError`, or `DataError` with the line.
    """
    lines = [(number, line.strip()) for number, line in read_lines(path)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise DataError("no questions", where=str(path), expected="ratings of pairs of words, or analogies")
    return (_analogies if lines[0][1].startswith(":") else _ratings)(path, lines)


def score_words(vectors: WordVectors, questions: Ratings | Analogies) -> list[WordScore]:
    """Return Spearman's correlation with the ratings, or the accuracy of each section of analogies, then of all."""
    if isinstance(questions, Ratings):
        return [_correlation(vectors, questions)]
    answered = {name: _answers(vectors, asked) for name, asked in questions.sections.items()}
    scores = [_accuracy(name, answered[name], len(asked)) for name, asked in questions.sections.items()]
    everything = [right for listed in answered.values() for right in listed]
    return [*scores, _accuracy(questions.name, everything, sum(map(len, questions.sections.values())))]


def _ratings(path: Path, lines: Sequence[tuple[int, str]]) -> Ratings:
    pairs, rated = [], []
    for number, line in lines:
        fields = line.split("\t")
        try:
            one, other, rating = fields
            rated.append(float(rating))
        except ValueError:
            expected = "word, word and number, a tab between them"
            raise DataError("not a rated pair", where=f"{path}:{number}", got=clip(line), expected=expected) from None
        pairs.append((one, other))
    return Ratings(path.name, pairs, rated)


def _analogies(path: Path, lines: Sequence[tuple[int, str]]) -> Analogies:
    sections: dict[str, list[tuple[str, ...]]] = {}
    for number, line in lines:
        if line.startswith(":"):
            asked = sections.setdefault(line[1:].strip(), [])
            continue
        words = tuple(line.split())
        if len(words) != 4:
            raise DataError("not an analogy", where=f"{path}:{number}", got=clip(line), expected="four words")
        asked.append(words)
    return Analogies(path.name, sections)


def _correlation(vectors: WordVectors, questions: Ratings) -> WordScore:
    """Compute Spearman's correlation; interval by Fisher's transformation with its variance (Fieller et al. 1957)."""
    from scipy.stats import spearmanr

    asked = zip(questions.pairs, questions.rated, strict=True)
    known = [(pair, rating) for pair, rating in asked if all(vectors.row(word) is not None for word in pair)]
    cosines = [vectors.similarity(*pair) for pair, _ in known]
    ratings = [rating for _, rating in known]
    if len(known) < 4 or np.ptp(cosines) == 0 or np.ptp(ratings) == 0:
        return WordScore(questions.name, "spearman", None, None, None, len(known), len(questions.pairs))
    found = float(spearmanr(ratings, cosines).statistic)
    spread = NORMAL_95 * (1.06 / (len(known) - 3)) ** 0.5
    middle = np.arctanh(np.clip(found, -1 + 1e-12, 1 - 1e-12))
    low, high = float(np.tanh(middle - spread)), float(np.tanh(middle + spread))
    return WordScore(questions.name, "spearman", found, low, high, len(known), len(questions.pairs))


def _answers(vectors: WordVectors, asked: Sequence[tuple[str, ...]]) -> list[bool]:
    """Return, per analogy without unknown words, whether d is nearest to b - a + c among all words but a, b and c."""
    rows = [[vectors.row(word) for word in words] for words in asked]
    known = np.array([listed for listed in rows if all(row is not None and row < AMONG for row in listed)], dtype=int)
    right: list[bool] = []
    table = vectors.directions[:AMONG]
    for start in range(0, len(known), AT_ONCE):
        some = known[start : start + AT_ONCE]  # (Q, 4)
        a, b, c = (table[some[:, column]] for column in range(3))  # each (Q, D)
        cosines = (b - a + c) @ table.T  # (Q, V), each row up to a factor
        np.put_along_axis(cosines, some[:, :3], -np.inf, axis=1)
        right += (cosines.argmax(axis=1) == some[:, 3]).tolist()
    return right


def _accuracy(name: str, right: Sequence[bool], questions: int) -> WordScore:
    """Compute the accuracy, with Wilson's interval (1927)."""
    known = len(right)
    if not known:
        return WordScore(name, "accuracy", None, None, None, 0, questions)
    share = sum(right) / known
    return WordScore(name, "accuracy", share, *wilson(share, known), known, questions)
