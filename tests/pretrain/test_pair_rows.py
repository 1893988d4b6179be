"""Pairs batched by tokens: every one once per epoch, near-equal lengths together, a pure function of seed and step."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.objective import VariedRows
from graftwork.pretrain.pair_rows import PairRows

PAD, COUNT, LENGTH, BATCH = 0, 500, 24, 16


@pytest.fixture(scope="module")
def pairs() -> PairRows:
    """Source and target of pair n hold n + 1 alone, in lengths up to 30."""
    draw = np.random.default_rng(0)
    source = draw.integers(2, 30, COUNT)
    sizes = np.stack([source, np.maximum(2, source + draw.integers(-3, 4, COUNT))], axis=1).flatten()
    ids = np.repeat(np.repeat(np.arange(1, COUNT + 1), 2), sizes).astype(np.uint16)
    return PairRows(SplitTokens(ids, np.array([0, *sizes.cumsum()]), bytes=4, words=4), LENGTH, PAD)


def epoch(pairs: PairRows, number: int, seed: int = 3) -> list[list[int]]:
    steps = pairs.steps(BATCH)
    return [pairs.rows(seed, step, BATCH)[:, 0, 0].tolist() for step in range(number * steps, (number + 1) * steps)]


def test_every_pair_that_is_short_enough_comes_once_in_an_epoch(pairs: PairRows) -> None:
    assert isinstance(pairs, VariedRows)
    first, second = epoch(pairs, 0), epoch(pairs, 1)
    one, two = ([pair for step in steps for pair in step] for steps in (first, second))
    assert sorted(one) == sorted(two)
    assert len(one) == len(set(one)) == len(pairs) == COUNT - pairs.left_out < COUNT
    assert {frozenset(step) for step in first} != {frozenset(step) for step in second}
    assert sorted(len(step) for step in first) == sorted(len(step) for step in second)
    assert epoch(pairs, 0) == first != epoch(pairs, 0, seed=4)


def test_a_step_is_full_and_of_near_equal_lengths(pairs: PairRows) -> None:
    padding = cells = full = 0
    for step in range(pairs.steps(BATCH)):
        rows = pairs.rows(0, step, BATCH)
        assert rows.shape[1] == 2 and len(rows) * rows.shape[2] <= BATCH * LENGTH
        assert (rows == rows[:, :1, :1]).logical_or(rows == PAD).all()  # a pair stays a pair
        full += len(rows) * rows.shape[2] > 0.8 * BATCH * LENGTH
        for side in rows.unbind(1):
            used = side[:, : int((side != PAD).sum(1).max())]
            padding, cells = padding + int((used == PAD).sum()), cells + used.numel()
    assert padding / cells < 0.12
    assert full >= pairs.steps(BATCH) - 2
    assert pairs.ids(BATCH) * pairs.steps(BATCH) == pytest.approx(len(pairs.tokens.ids))


def test_typical_steps_stand_for_all(pairs: PairRows) -> None:
    def mean(steps: list[int]) -> float:
        return float(np.mean([pairs.rows(5, step, 8).numel() for step in steps]))

    typical = pairs.typical(5, 8)
    assert len(set(typical)) == 8 < pairs.steps(8)
    assert mean(typical) == pytest.approx(mean(list(range(pairs.steps(8)))), rel=0.05)
