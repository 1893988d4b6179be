"""The best stretch of words, against trying all of them."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.core.ragged import Ragged
from graftwork.targets.best_spans import best_spans, ranked_spans


@pytest.mark.parametrize("longest", [1, 3, 50])
def test_best_of_all_stretches(longest: int) -> None:
    random = np.random.default_rng(0)
    counts = random.integers(2, 12, 40)
    logits = Ragged(random.integers(-3, 4, (int(counts.sum()), 2)).astype(np.float64), counts)
    found = best_spans(logits, longest)
    for number, rows in enumerate(logits):
        words = rows[1:]
        tried = [
            (words[i, 0] + words[j, 1], i, j) for i in range(len(words)) for j in range(i, min(len(words), i + longest))
        ]
        score, start, end = max(tried, key=lambda one: (one[0], -one[1], -one[2]))
        assert (found.score[number], found.start[number], found.end[number]) == (score, start, end)
        assert found.none[number] == rows[0].sum()
        ranked = sorted(tried, key=lambda one: (-one[0], one[1], one[2]))[:4]
        assert ranked_spans(words, longest, 4) == [(i, j) for _, i, j in ranked]


def test_the_first_row_is_no_word() -> None:
    logits = Ragged(np.array([[9.0, 9.0], [0.0, 1.0], [2.0, 0.0]]), np.array([3]))
    found = best_spans(logits, 30)
    assert (found.start.tolist(), found.end.tolist()) == ([1], [1]) and found.none.tolist() == [18.0]
    assert len(best_spans(Ragged(np.zeros((0, 2)), np.zeros(0, dtype=np.int64)), 30).start) == 0
