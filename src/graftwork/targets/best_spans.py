"""Decoding of passage answers: the span with the highest start logit + end logit, against "no answer".

The logits of an example are rows (start, end): the first row is "no answer", each of the others a word.
They are compared over the whole passage, however many windows it was read in (Clark & Gardner 2018, arXiv:1710.10723).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graftwork.core.kind import AsksPassages
from graftwork.core.method import Setting
from graftwork.core.ragged import Ragged
from graftwork.core.task import Task
from graftwork.registry import kinds

SURE = 10.0  # start and end logit of a rule's answer; all others are 0


@dataclass(frozen=True)
class BestSpans:
    """The best span of words of each of N examples, and its score beside that of "no answer"."""

    start: NDArray[np.int64]  # (N,) first word, its index in the passage
    end: NDArray[np.int64]  # (N,) last word
    score: NDArray[np.float64]  # (N,) start logit + end logit
    none: NDArray[np.float64]  # (N,) score of "no answer"


def best_spans(logits: Ragged, longest: int) -> BestSpans:
    """Find each example's best span of at most `longest` words from logits (W, 2); ties: the first, then the shortest.

    Every example must have a word.
    """
    first, owners = logits.starts, logits.owners
    start, end = (logits.flat[:, column].astype(np.float64) for column in (0, 1))  # each (W,)
    none = start[first] + end[first]
    start[first] = end[first] = -np.inf
    best, length = np.full(len(end), -np.inf), np.zeros(len(end), dtype=np.int64)
    for more in range(min(longest, int(logits.counts.max(initial=0)))):
        rows = len(end) - more
        better = (end[more:] > best[:rows]) & (owners[more:] == owners[:rows])
        best[:rows][better], length[:rows][better] = end[more:][better], more
    total = start + best
    score = np.maximum.reduceat(total, first) if len(first) else total
    chosen = np.flatnonzero(total == score[owners])
    chosen = chosen[np.unique(owners[chosen], return_index=True)[1]]  # the first of equals
    word = chosen - first - 1
    return BestSpans(word, word + length[chosen], score, none)


def ranked_spans(rows: NDArray[np.float64], longest: int, count: int) -> list[tuple[int, int]]:
    """Return first and last word of the `count` best spans, best first, from one example's word logits (W, 2)."""
    places = np.arange(len(rows))
    starts, more = (grid.reshape(-1) for grid in np.meshgrid(places, np.arange(longest), indexing="ij"))
    inside = starts + more < len(rows)
    starts, ends = starts[inside], (starts + more)[inside]  # by start, then by length
    scores = rows[starts, 0] + rows[ends, 1]
    best = np.argsort(-scores, kind="stable")[:count]
    return list(zip(starts[best].tolist(), ends[best].tolist(), strict=True))


def without_passages(task: Task) -> str:
    """Return why a method that answers with passage spans cannot do this task, or an empty string."""
    asks = isinstance(kinds.get(task.kind), AsksPassages)
    return "" if asks else "it answers questions about passages, and this task has none"


def longest_of(setting: Setting) -> int:
    """Return the maximum words of an answer. The task must ask about passages."""
    assert isinstance(setting.kind, AsksPassages)
    return setting.kind.longest


def sure_of(spans: Sequence[tuple[int, int]], words: Sequence[int], longest: int) -> Ragged:
    """Return logits (W, 2) of a rule that answers these (first, last) `spans`, cut to `longest` words.

    `words` are the numbers of words of the passages.
    """
    counts = np.array(words, dtype=np.int64) + 1
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    flat, starts = np.zeros((int(counts.sum()), 2)), np.cumsum(counts) - counts
    flat[starts + 1 + first, 0] = SURE
    flat[starts + 1 + np.minimum(last, first + longest - 1), 1] = SURE
    return Ragged(flat, counts)
