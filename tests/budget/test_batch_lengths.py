"""Tokens per batch, padding included: the same as the batches that are really computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graftwork.budget.batch_lengths import Lengths
from graftwork.data.splits.batch_order import bucket
from graftwork.run.session import Session
from graftwork.train.batches import by_length
from graftwork.train.frozen_pass import TOKENS_PER_BATCH


@pytest.mark.parametrize("pair", [False, True])
def test_tokens_are_those_of_the_collated_batches(pair: bool, open_tiny: Callable[..., Session]) -> None:
    session = open_tiny(pair=pair)
    assert session.backbone is not None
    lengths = Lengths(session.backbone, session.dataset.splits)
    encoded = lengths.encoded["train"]

    def collated(rows: list[int]) -> int:
        assert session.backbone is not None
        return session.backbone.collate(encoded, rows)["input_ids"].numel()

    epoch = lengths.of_epoch(8, 5)
    assert [tokens for _, tokens in epoch] == [collated(encoded.sequences(rows.tolist())) for rows, _ in epoch]
    assert all(np.array_equal(a, b) for (a, _), b in zip(epoch, bucket(encoded.lengths, 8, 5, 1), strict=True))
    passes = by_length(np.array([len(ids) for ids in encoded.ids]), TOKENS_PER_BATCH)
    for depth in (None, 1):
        assert lengths.of_pass("train", depth) == sum(collated(rows.tolist()) for rows in passes)
    middle = lengths.middling("train")
    assert lengths.of_answers("train", middle) == collated(encoded.sequences(middle.tolist()))
    assert lengths.of_answers("train") >= lengths.of_answers("train", middle)
