"""Which stretch of a passage answers: start logit + end logit, highest over all its words, against "no answer".

The logits of an example are rows (start, end): the first row stands for "no answer", each of the others for a word.
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

SURE = 10.0  # the logits of the start and the end that a rule answers; all others are 0


@dataclass(frozen=True)
class BestSpans:
    """Of each of N examples the best stretch of words, and how it compares with none."""

    start: NDArray[np.int64]  # (N,) first word, by its number in the passage
    end: NDArray[np.int64]  # (N,) last word
    score: NDArray[np.float64]  # (N,) start logit + end logit
    none: NDArray[np.float64]  # (N,) of "no answer"


def best_spans(logits: Ragged, longest: int) -> BestSpans:
    """(W, 2) logits -> the best stretch of at most `longest` words of each example: of equals the first, the shortest.

    Every example has a word.
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
    """(W, 2) logits of the words of one example -> first and last word of its `count` best stretches, best first."""
    places = np.arange(len(rows))
    starts, more = (grid.reshape(-1) for grid in np.meshgrid(places, np.arange(longest), indexing="ij"))
    inside = starts + more < len(rows)
    starts, ends = starts[inside], (starts + more)[inside]  # by start, then by length
    scores = rows[starts, 0] + rows[ends, 1]
    best = np.argsort(-scores, kind="stable")[:count]
    return list(zip(starts[best].tolist(), ends[best].tolist(), strict=True))


def without_passages(task: Task) -> str:
    """Why what answers with a stretch of a passage can't do this task, or an empty string."""
    asks = isinstance(kinds.get(task.kind), AsksPassages)
    return "" if asks else "it answers questions about passages, and this task has none"


def longest_of(setting: Setting) -> int:
    """Words of an answer, at most. The task must ask about passages."""
    assert isinstance(setting.kind, AsksPassages)
    return setting.kind.longest


def sure_of(spans: Sequence[tuple[int, int]], words: Sequence[int], longest: int) -> Ragged:
    """(W, 2) logits of a rule that answers these (first, last) words of passages of so many, `longest` at most."""
    counts = np.array(words, dtype=np.int64) + 1
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    flat, starts = np.zeros((int(counts.sum()), 2)), np.cumsum(counts) - counts
    flat[starts + 1 + first, 0] = SURE
    flat[starts + 1 + np.minimum(last, first + longest - 1), 1] = SURE
    return Ragged(flat, counts)
