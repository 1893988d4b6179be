"""Batches: every index exactly once, near-equal lengths, a pure function of seed and epoch."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.data.splits.batch_order import bucket


def lengths_of(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(3, 200, rows).astype(np.int64)


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 1600, 1601, 5000])
@pytest.mark.parametrize("size", [1, 8, 32])
def test_bucket_holds_every_index_once(rows: int, size: int) -> None:
    batches = bucket(lengths_of(rows), size, seed=3, epoch=1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(rows))
    assert sum(len(batch) < size for batch in batches) == (rows % size > 0)
    assert max(len(batch) for batch in batches) <= size


def test_bucket_is_a_function_of_seed_and_epoch() -> None:
    lengths = lengths_of(500)
    orders = {key: np.concatenate(bucket(lengths, 16, *key)).tolist() for key in ((0, 0), (0, 1), (1, 0), (1, 1))}
    assert np.concatenate(bucket(lengths, 16, 0, 1)).tolist() == orders[0, 1]
    assert len({tuple(order) for order in orders.values()}) == 4


def test_bucket_pads_little_and_starts_anywhere() -> None:
    lengths = lengths_of(3200)
    batches = bucket(lengths, 32, 0, 0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    shuffled = np.random.default_rng(0).permutation(3200).reshape(-1, 32)
    assert padded < 1.03 * lengths.sum() < lengths[shuffled].max(axis=1).sum() * 32 / 1.5
    longest = [lengths[batch].max() for batch in batches]
    assert longest != sorted(longest)
