"""Answers in batches come back in the order of what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graftwork.train.answer_order import TOKENS_AT_ONCE, in_batches


def test_batches_come_back_in_order_and_buckets_spare_padding() -> None:
    sizes = np.random.default_rng(0).permutation([20] * 30 + [45] * 30 + [300] * 3).astype(np.int64)
    positions = {}
    for buckets in (False, True):
        read: list[int] = []

        def work(rows: Sequence[int], read: list[int] = read) -> list[int]:
            read.append(len(rows) * int(sizes[rows].max()))
            return [int(sizes[row]) for row in rows]

        assert in_batches(sizes, work, buckets) == sizes.tolist()
        assert max(read) <= TOKENS_AT_ONCE
        positions[buckets] = sum(read)
    assert sizes.sum() <= positions[True] < 0.8 * positions[False]
