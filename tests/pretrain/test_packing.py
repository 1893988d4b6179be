"""Rows: a pure function of seed and step, every row once per epoch; streams: the whole text in order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graftwork.errors import DataError
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.packing import PackedRows, Streams, shuffled


def tokens(count: int) -> SplitTokens:
    return SplitTokens(np.arange(count, dtype=np.uint16), np.array([0, count]), bytes=4 * count, words=count)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 1000, 4097])
def test_shuffled_is_a_permutation(count: int) -> None:
    for seed in range(3):
        assert sorted(shuffled(np.arange(count), count, seed)) == list(range(count))


def test_shuffled_looks_random() -> None:
    order = shuffled(np.arange(10_000), 10_000, 7)
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
    assert (order == np.arange(10_000)).sum() < 10
    assert abs(np.corrcoef(order, shuffled(np.arange(10_000), 10_000, 8))[0, 1]) < 0.05


def test_shuffled_needs_no_memory_of_the_size() -> None:
    places = np.array([0, 1, 10**12 - 1])
    sent = shuffled(places, 10**12, 0)
    assert len(set(sent.tolist())) == 3
    assert ((sent >= 0) & (sent < 10**12)).all()


def test_every_row_once_per_epoch_in_another_order_every_time() -> None:
    packed = PackedRows(tokens(1005), 10)
    assert len(packed) == 100
    assert packed.steps(8) == 12
    first = torch.cat([packed.rows(0, step, 8) for step in range(25)])  # two epochs: batches run over the border
    epochs = first[:100], first[100:]
    for epoch in epochs:
        assert sorted(epoch[:, 0].tolist()) == list(range(0, 1000, 10))
    assert not torch.equal(*epochs)
    assert torch.equal(first[0], torch.arange(int(first[0, 0]), int(first[0, 0]) + 10))


def test_rows_are_a_pure_function_of_seed_and_step() -> None:
    packed = PackedRows(tokens(1000), 10)
    later = packed.rows(3, 7, 4)
    assert torch.equal(later, PackedRows(tokens(1000), 10).rows(3, 7, 4))
    assert not torch.equal(later, packed.rows(4, 7, 4))
    halves = torch.cat([packed.rows(3, 14, 2), packed.rows(3, 15, 2)])
    assert torch.equal(later, halves)  # the order is of rows, not of batches
    assert later.dtype == torch.int64


def test_start_and_end_stand_round_the_text() -> None:
    rows = PackedRows(tokens(100), 10, start=500, end=501).at(np.array([0, 1]))
    assert rows.tolist() == [[500, *range(8), 501], [500, *range(8, 16), 501]]
    assert PackedRows(tokens(100), 10, end=501).at(np.array([1]))[0].tolist() == [*range(9, 18), 501]


def test_a_corpus_smaller_than_a_batch() -> None:
    with pytest.raises(DataError, match="smaller than one batch") as caught:
        PackedRows(tokens(50), 10).rows(0, 0, 6)
    assert "at least 60: 6 rows of 10" in caught.value.expected
    with pytest.raises(DataError, match="smaller than one batch"):
        PackedRows(tokens(5), 10).rows(0, 0, 1)
    with pytest.raises(DataError, match="smaller than one batch"):
        Streams(tokens(50), 10).rows(0, 0, 6)


def test_streams_are_the_text_in_order() -> None:
    streams = Streams(tokens(103), 6)
    assert streams.steps(4) == 4  # 25 ids each: 4 steps of 6, and one more to be predicted
    rows = torch.stack([streams.rows(0, step, 4) for step in range(4)])  # (steps, B, T + 1)
    assert rows[0, :, 0].tolist() == [0, 25, 50, 75]
    read = rows[:, :, :-1].transpose(0, 1).reshape(4, 24)
    assert torch.equal(read, read[:, :1] + torch.arange(24))
    assert torch.equal(rows[1:, :, 0], rows[:-1, :, -1])
    assert [streams.begins(step, 4) for step in range(6)] == [True, False, False, False, True, False]
    assert torch.equal(streams.rows(0, 4, 4), rows[0])
    assert torch.equal(streams.rows(9, 1, 4), rows[1])


def test_windows_of_any_length() -> None:
    assert Streams(tokens(40), 5).window(3, 2, 2).tolist() == [[3, 4, 5], [23, 24, 25]]
