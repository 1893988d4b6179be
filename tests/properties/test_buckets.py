"""Buckets: every epoch shows every example once, in batches as large as asked for, and the seed alone decides them."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graftwork.data.splits.batch_order import CHUNK_BATCHES, bucket


@given(
    lengths=st.lists(st.integers(1, 600), max_size=500),
    size=st.integers(1, 70),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 50),
)
def test_every_example_once_an_epoch(lengths: list[int], size: int, seed: int, epoch: int) -> None:
    counted = np.array(lengths, np.int64)
    batches = bucket(counted, size, seed, epoch)
    assert sorted(place for batch in batches for place in batch.tolist()) == list(range(len(lengths)))
    sizes = sorted((len(batch) for batch in batches), reverse=True)
    assert len(batches) == -(-len(lengths) // size) and all(found == size for found in sizes[:-1])
    again = bucket(counted, size, seed, epoch)
    assert all(np.array_equal(one, other) for one, other in zip(batches, again, strict=True))
    assert all((np.diff(counted[batch]) >= 0).all() for batch in batches)


@given(count=st.integers(30, 200), seed=st.integers(0, 1000))
def test_within_a_chunk_no_two_batches_overlap_in_length(count: int, seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 100, count)
    spans = sorted((int(lengths[batch].min()), int(lengths[batch].max())) for batch in bucket(lengths, 8, seed, 0))
    assert count <= 8 * CHUNK_BATCHES
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
