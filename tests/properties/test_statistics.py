"""Differences and their corrections: what must hold whatever the runs are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftwork.compare.statistics import Bootstrap, RowSample, bootstrap, holm
from graftwork.registry import metrics

DRAWS = 200


@st.composite
def two_rows(draw: st.DrawFn) -> tuple[RowSample, RowSample]:
    """Runs of two methods over the same examples, right or wrong."""
    examples, seed = draw(st.integers(2, 60)), draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    hard = random.random(examples)
    return tuple(
        RowSample(name, tuple((random.random((examples, 1)) < hard[:, None] + draw(st.floats(-0.5, 0.5))).astype(float)
                           for _ in range(draw(st.integers(1, 6)))))
        for name in "ab"
    )  # type: ignore[return-value]  # fmt: skip


def drawn(*rows: RowSample) -> Bootstrap:
    return bootstrap(rows, metrics.get("accuracy"), draws=DRAWS)


def changed(row: RowSample, scale: float, shift: float) -> RowSample:
    return RowSample(row.name, tuple(scale * run + shift for run in row.runs))


@given(rows=two_rows())
def test_a_difference_turned_round_is_the_same(rows: tuple[RowSample, RowSample]) -> None:
    found = drawn(*rows)
    one, other = found.difference("a", "b"), found.difference("b", "a")
    assert one.delta == -other.delta
    assert (one.low, one.high) == (pytest.approx(-other.high, abs=1e-9), pytest.approx(-other.low, abs=1e-9))
    assert one.p_a_better + other.p_a_better == pytest.approx(1)
    assert one.p == other.p and one.smallest_detectable == other.smallest_detectable
    turned = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
    assert other.verdict == turned[one.verdict]
    assert one.low <= one.delta <= one.high


@given(rows=two_rows(), scale=st.floats(0.1, 1), shift=st.floats(-0.5, 0))
def test_scale_and_shift_move_the_difference_and_not_the_verdict(
    rows: tuple[RowSample, RowSample], scale: float, shift: float
) -> None:
    plain = drawn(*rows).difference("a", "b")
    moved = drawn(*(changed(row, scale, shift) for row in rows)).difference("a", "b")
    assert moved.delta == pytest.approx(scale * plain.delta, abs=1e-9)
    if max(abs(plain.low), abs(plain.high)) < 1:  # else it is cut to what an accuracy allows
        assert (moved.low, moved.high) == (
            pytest.approx(scale * plain.low, abs=1e-6),
            pytest.approx(scale * plain.high, abs=1e-6),
        )
    if plain.p is None or moved.p is None:
        assert plain.p == moved.p
    elif abs(plain.delta) > 1e-9:
        assert moved.p == pytest.approx(plain.p, rel=1e-4, abs=1e-6)


@given(rows=two_rows())
def test_a_method_beside_itself_is_not_told_apart(rows: tuple[RowSample, RowSample]) -> None:
    found = drawn(rows[0], RowSample("b", rows[0].runs)).difference("a", "b")
    assert found.delta == 0 and found.verdict == "cannot tell" and found.p_a_better == pytest.approx(0.5)
    assert found.low <= 0 <= found.high


P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@given(p_values=P_VALUES)
def test_holm_corrects_upward_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(0 <= p <= found <= 1 for p, found in zip(p_values, corrected, strict=True))
    assert all(found <= min(1.0, len(p_values) * p) + 1e-12 for p, found in zip(p_values, corrected, strict=True))
    pairs = sorted(zip(p_values, corrected, strict=True))
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(pairs))
    if p_values:
        assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


@given(p_values=P_VALUES, data=st.data())
def test_holm_does_not_look_at_the_order_of_the_pairs(p_values: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(p_values))))
    corrected = holm(p_values)
    assert holm([p_values[place] for place in order]) == [corrected[place] for place in order]
