"""Batches of passes and answers: every index once, the longest first, within their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.train.batches import by_length, with_little_padding


@pytest.mark.parametrize("tokens", [1, 64, 1000, 100_000])
def test_by_length_holds_every_index_once_within_the_budget(tokens: int) -> None:
    lengths = np.random.default_rng(0).integers(3, 200, 700).astype(np.int64)
    batches = by_length(lengths, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(700))
    assert all(len(batch) * lengths[batch].max() <= tokens or len(batch) == 1 for batch in batches)
    assert (np.diff(lengths[np.concatenate(batches)]) <= 0).all()


def test_by_length_fills_batches() -> None:
    assert [len(batch) for batch in by_length(np.full(10, 8, dtype=np.int64), 32)] == [4, 4, 2]
    assert by_length(np.zeros(0, dtype=np.int64), 32) == []


def test_by_length_bounds_examples_too() -> None:
    assert [len(batch) for batch in by_length(np.full(10, 2, dtype=np.int64), 32, 7)] == [7, 3]


def test_few_sequences_of_mixed_lengths_are_divided_where_that_spares_padding() -> None:
    lengths = np.array([4] * 60 + [200] * 4, dtype=np.int64)
    assert [len(batch) for batch in by_length(lengths, 100_000)] == [64]
    assert [sorted(lengths[batch]) for batch in with_little_padding(lengths, 100_000, None, 128)] == [
        [4] * 60,
        [200] * 4,
    ]
    assert [len(batch) for batch in with_little_padding(lengths[:60], 100_000, None, 128)] == [60]


def test_divided_batches_hold_every_index_once_within_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(3, 200, 700).astype(np.int64)
    batches = with_little_padding(lengths, 1000, 7, 128)
    assert sorted(np.concatenate(batches).tolist()) == list(range(700))
    assert all(len(batch) <= 7 for batch in batches)
    assert all(len(batch) * lengths[batch].max() <= 1000 or len(batch) == 1 for batch in batches)
