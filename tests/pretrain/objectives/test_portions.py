"""A corpus in parts that can be taken up."""

from __future__ import annotations

import numpy as np

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objectives.word_vectors import portions

STARTS = np.array([0, 5, 6, 30, 31, 40])
TOKENS = SplitTokens(np.arange(40, dtype=np.uint16), STARTS, bytes=40, words=40)


def seen(seed: int, count: int, size: int) -> list[int]:
    return [
        int(STARTS[document]) + place
        for portion in portions(TOKENS, seed, count, size)
        for document, start, end in portion.parts
        for place in range(start, end)
    ]


def test_every_pass_has_every_token_once_in_an_order_of_its_own() -> None:
    whole = seen(0, 80, 7)
    assert sorted(whole[:40]) == sorted(whole[40:]) == list(range(40))
    assert whole[:40] != whole[40:] and whole[:40] != list(range(40))
    assert seen(0, 80, 7) == whole != seen(1, 80, 7)


def test_the_size_of_a_portion_changes_no_order() -> None:
    assert seen(0, 63, 7) == seen(0, 63, 1000) == seen(0, 80, 9)[:63]


def test_portions_follow_each_other() -> None:
    listed = list(portions(TOKENS, 0, 63, 10))
    assert [(one.start, one.end) for one in listed] == [(n, min(n + 10, 63)) for n in range(0, 63, 10)]
    assert all(sum(end - start for _, start, end in one.parts) == one.end - one.start for one in listed)
