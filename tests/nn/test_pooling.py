"""What is read of a sequence, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from graftwork.core.backbone import POOLINGS
from graftwork.nn.pooling import pool_states

SEQUENCE = torch.tensor([[[1.0, -5.0], [4.0, -2.0], [9.0, 9.0]], [[3.0, 0.0], [-1.0, 2.0], [1.0, 4.0]]])  # (2, 3, 2)
MASK = torch.tensor([[True, True, False], [True, True, True]])  # (2, 3)
EXPECTED = {
    "first": [[1.0, -5.0], [3.0, 0.0]],
    "last": [[4.0, -2.0], [1.0, 4.0]],
    "mean": [[2.5, -3.5], [1.0, 2.0]],
    "mean of words": [[0.0, 0.0], [-1.0, 2.0]],
    "first two": [[2.5, -3.5], [1.0, 1.0]],
    "concat": [[4.0, -2.0, 4.0, -2.0, 2.5, -3.5], [1.0, 4.0, 3.0, 4.0, 1.0, 2.0]],
}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling(pooling: str) -> None:
    read = pool_states(SEQUENCE, MASK, pooling)
    assert read.tolist() == EXPECTED[pooling]
    assert read.shape[1] == POOLINGS[pooling] * SEQUENCE.shape[2]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_is_not_read(pooling: str) -> None:
    other = SEQUENCE.clone()
    other[0, 2] = torch.inf
    finite = pool_states(other.nan_to_num(posinf=1e30), MASK, pooling)
    torch.testing.assert_close(finite, torch.tensor(EXPECTED[pooling]))


def test_words_are_read_where_they_begin() -> None:
    words = torch.tensor([[False, True, False], [True, False, True]])
    assert pool_states(SEQUENCE.bfloat16(), MASK, "concat", words).tolist() == [[4.0, -2.0], [3.0, 0.0], [1.0, 4.0]]
    assert pool_states(SEQUENCE.bfloat16(), MASK, "concat", words).dtype == torch.float32
