"""Intervals cover, verdicts are earned, and it is quick."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from boards import Share, hits

from graftwork.compare import statistics
from graftwork.compare.sentences import sentence
from graftwork.compare.statistics import RowSample, Spread, bootstrap, holm, smallest_detectable
from graftwork.core.task import Task
from graftwork.registry import metrics


def simulated(rng: np.random.Generator, seeds: int, seed_sd: float, examples: int = 300) -> tuple[np.ndarray, ...]:
    """Runs right on 85 % of the examples in expectation: a part of the luck is the example's, a part the run's."""
    shared = np.random.default_rng(int(rng.integers(1 << 31))).random(examples)
    runs = []
    for _ in range(seeds):
        luck = np.where(rng.random(examples) < 0.3, rng.random(examples), shared)
        runs.append((luck < 0.85 + rng.uniform(-1.7, 1.7) * seed_sd).astype(np.float64)[:, None])
    return tuple(runs)


@pytest.mark.parametrize(
    ("seeds", "seed_sd"),
    [
        ((5, 5), 0.03),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (((5, 5), 0.0), ((10, 10), 0.02), ((5, 10), 0.03))),
    ],
)
def test_equal_methods_are_rarely_told_apart(seeds: tuple[int, int], seed_sd: float) -> None:
    rng = np.random.default_rng(5)
    told, sims = 0, 400
    for sim in range(sims):
        a, b = (RowSample(name, simulated(rng, n, seed_sd)) for name, n in zip("ab", seeds, strict=True))
        told += bootstrap([a, b], Share(), draws=200, seed=sim).difference("a", "b").verdict != "cannot tell"
    assert told / sims <= 0.08  # 5 % and under three standard errors; the raw bootstrap has up to 15 %


def test_the_interval_of_a_row_covers_the_truth() -> None:
    rng = np.random.default_rng(6)
    scores = [
        bootstrap([RowSample("a", simulated(rng, 5, 0.03))], Share(), draws=200, seed=sim).score("a")
        for sim in range(120)
    ]
    assert 0.89 <= np.mean([score.low <= 0.85 <= score.high for score in scores]) <= 1.0
    assert np.mean([score.high - score.low for score in scores]) < 0.2


def test_a_real_difference_is_found() -> None:
    samples = [
        RowSample(name, tuple(hits(share, seed) for seed in range(5))) for name, share in (("a", 0.9), ("b", 0.7))
    ]
    boot = bootstrap(samples, Share())
    pair = boot.difference("a", "b")
    assert pair.verdict == "better"
    assert boot.difference("b", "a").verdict == "worse"
    assert pair.low < pair.delta < pair.high
    assert pair.delta == pytest.approx(boot.score("a").mean - boot.score("b").mean)
    assert pair.p_a_better == 1.0
    assert pair.smallest_detectable is not None
    assert 0 < pair.smallest_detectable < pair.delta


def test_pairing_narrows_the_difference() -> None:
    a = tuple(hits(0.80, seed) for seed in range(5))
    b = tuple(hits(0.83, seed) for seed in range(5))
    boot = bootstrap([RowSample("a", a), RowSample("b", b)], Share(), draws=2000)
    pair, score = boot.difference("b", "a"), boot.score("a")
    assert pair.high - pair.low < 0.7 * (score.high - score.low)


def test_equal_rows_tie() -> None:
    runs = tuple(hits(0.8, seed) for seed in range(5))
    pair = bootstrap([RowSample("a", runs), RowSample("b", runs)], Share(), draws=200).difference("a", "b")
    assert (pair.delta, pair.p_a_better, pair.p, pair.verdict) == (0.0, 0.5, 1.0, "cannot tell")


def test_two_runs_say_nothing() -> None:
    samples = [
        RowSample("best", tuple(hits(0.9, seed) for seed in range(5))),
        RowSample("two", tuple(hits(0.3, seed) for seed in range(2))),
        RowSample("three", tuple(hits(0.3, seed) for seed in range(3))),
    ]
    boot = bootstrap(samples, Share(), draws=500)
    two, three = boot.difference("best", "two"), boot.difference("best", "three")
    assert (two.p, two.verdict, two.smallest_detectable) == (None, "cannot tell", None)
    assert three.verdict == "better"
    assert [pair.p_holm is None for pair in boot.differences()] == [True, False, True]


def test_who_asks_for_fewer_runs_is_answered_over_examples_alone() -> None:
    samples = [RowSample("best", (hits(0.9, 0),)), RowSample("worst", (hits(0.3, 0),))]
    assert bootstrap(samples, Share(), draws=200).difference("best", "worst").verdict == "cannot tell"
    pair = bootstrap(samples, Share(), draws=200, fewest_runs=1).difference("best", "worst")
    assert (pair.verdict, pair.p is not None and pair.p < 1e-6) == ("better", True)


def test_same_seed_same_numbers() -> None:
    samples = [
        RowSample(name, tuple(hits(share, seed) for seed in range(3))) for name, share in (("a", 0.8), ("b", 0.82))
    ]
    first, again, other = (bootstrap(samples, Share(), draws=300, seed=seed).differences() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_draws_are_shared_by_rows() -> None:
    one = tuple(hits(0.8, seed) for seed in range(4))
    boot = bootstrap([RowSample("a", one), RowSample("b", one)], Share(), draws=100)
    assert np.array_equal(boot.rows["a"].drawn, boot.rows["b"].drawn)


def test_chunks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [RowSample("a", tuple(hits(0.8, seed) for seed in range(3)))]
    whole = bootstrap(samples, Share(), draws=64).rows["a"].drawn
    monkeypatch.setattr(statistics, "_CHUNK_BYTES", 8 * 200 * 7)
    assert np.allclose(bootstrap(samples, Share(), draws=64).rows["a"].drawn, whole, atol=1e-12)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_smallest_detectable_is_the_textbook_formula() -> None:
    assert smallest_detectable(Spread(0.01, 1e9)) == pytest.approx((1.96 + 0.84) * 0.01, rel=1e-3)
    assert smallest_detectable(Spread(0.01, 4)) == pytest.approx((2.776 + 0.842) * 0.01, rel=1e-3)
    assert smallest_detectable(Spread(0.01, 4, known=False)) is None
    assert smallest_detectable(Spread(0.01, 4, examples=6)) is not None


def test_what_could_show_nothing_has_no_smallest_difference() -> None:
    assert smallest_detectable(Spread(0.01, 4, examples=5)) is None  # the sign test gives 0.0625 at least
    assert smallest_detectable(Spread(0.0, 1e9)) is None
    runs = (hits(0.8, 0),) * 5
    pair = bootstrap([RowSample("a", runs), RowSample("b", runs)], Share(), draws=200).difference("a", "b")
    assert sentence(asdict(pair)) == "a and b: cannot tell; they score the same on any of these rows"


def test_a_few_examples_that_differ_alike_are_no_certainty() -> None:
    for error in (0.0, 1e-17):
        assert Spread(error, 2).p_value(1.0) == 0.25  # three heads, or three tails, of a fair coin
        assert Spread(error, 5).p_value(-0.5) == 0.03125
        assert Spread(error, 2).p_value(0.0) == 1.0
    right, wrong = np.ones((3, 1)), np.zeros((3, 1))
    found = bootstrap([RowSample("a", (right,) * 3), RowSample("b", (wrong,) * 3)], Share(), draws=200)
    assert [pair.verdict for pair in found.differences()] == ["cannot tell"]


@pytest.mark.parametrize("rows", [4, 5])
def test_under_six_rows_nothing_is_told_apart(rows: int) -> None:
    right, wrong = np.ones((rows, 1)), np.zeros((rows, 1))
    wrong[0] = 1.0
    found = bootstrap([RowSample("a", (right,) * 5), RowSample("b", (wrong,) * 5)], Share()).difference("a", "b")
    assert found.p is not None and found.p >= 2 * 0.5**rows and found.verdict == "cannot tell"
    assert sentence(asdict(found)) == "a and b: cannot tell; too few rows of the test split"
    assert -1 <= found.low <= found.delta <= found.high <= 1


def test_draws_in_which_both_score_the_same_are_ties() -> None:
    """a is right on two rows that b has wrong: e^-2 of the draws miss both."""
    one = hits(0.8, 0)
    other = one.copy()
    other[np.flatnonzero(one)[:2]] = 0.0
    found = bootstrap([RowSample("a", (one,) * 5), RowSample("b", (other,) * 5)], Share()).difference("a", "b")
    assert found.p_a_better == pytest.approx(1 - np.exp(-2) / 2, abs=0.02)
    assert found.low == 0.0


def test_as_many_rows_for_one_as_for_the_other_are_even() -> None:
    one = hits(0.8, 0)
    other = one.copy()
    other[np.flatnonzero(one)[0]], other[np.flatnonzero(1 - one)[0]] = 0.0, 1.0
    found = bootstrap([RowSample("a", (one,) * 5), RowSample("b", (other,) * 5)], Share()).difference("a", "b")
    assert found.delta == 0 and found.p_a_better == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("luck", [0.01, 0.03, 0.1])
def test_the_share_of_draws_won_agrees_with_the_interval(luck: float) -> None:
    """Three seeds say little: what they leave open in the interval is no 99 % of the draws."""
    rng = np.random.default_rng(7)
    rows = [RowSample(name, tuple(hits(share + rng.normal(0, luck), seed) for seed in range(3)))
            for name, share in (("a", 0.86), ("b", 0.8), ("c", 0.77), ("d", 0.83))]  # fmt: skip
    for pair in bootstrap(rows, Share()).differences():
        assert (pair.low > 0) is (pair.p_a_better > 0.975) and (pair.high < 0) is (pair.p_a_better < 0.025)


def test_the_error_over_a_few_examples_is_unbiased() -> None:
    """Draws out of 6 see five sixths of their variance; over tasks, which are no examples, no sign test bounds p."""
    right = np.array([1.0, 1, 1, 1, 0, 0])[:, None]
    boot = bootstrap([RowSample("a", (right,) * 5), RowSample("b", (np.zeros((6, 1)),) * 5)], Share())
    spread = statistics._spread_of_difference(boot.rows["a"], boot.rows["b"])
    assert spread.error == pytest.approx(float(right.std(ddof=1)) / 6**0.5, rel=0.02)
    assert Spread(0.001, 3).p_value(1.0) < 0.001 < Spread(0.001, 3, examples=4).p_value(1.0) == 0.125


def test_intervals_end_where_the_metric_does() -> None:
    """A correlation goes down to -1: an interval that is cut at the lowest draw, or at 0, would be too short."""
    rng = np.random.default_rng(2)
    task = Task("t", Path("t.csv"), kind="regression")
    pearson, targets = metrics.get("pearson"), rng.normal(size=12)
    low, other = (
        tuple(pearson.statistics(targets, sign * targets + rng.normal(0, noise, 12), task) for noise in (0.3, 1, 9))
        for sign in (-1, 1)
    )
    boot = bootstrap([RowSample("low", low), RowSample("other", other)], pearson, draws=50)
    score, pair = boot.score("low"), boot.difference("low", "other")
    assert score.low == -1 < boot.rows["low"].drawn.min()
    assert -2 <= pair.low < -1
    undeclared = bootstrap([RowSample("a", (np.array([[-0.9], [0.1], [-0.5]]),))], Share(), draws=50)
    assert undeclared.rows["a"].least == -np.inf


def test_different_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="same examples"):
        bootstrap([RowSample("a", (hits(0.5, 0),)), RowSample("b", (hits(0.5, 0)[:-1],))], Share())


def test_the_error_is_never_below_that_over_examples_alone() -> None:
    """Runs that happen to agree do not make the test split larger."""
    rng = np.random.default_rng(3)
    fixed = (rng.random(400) < 0.8).astype(np.float64)[:, None]
    other = np.where(rng.random((400, 1)) < 0.2, 1 - fixed, fixed)
    many = bootstrap([RowSample("a", (fixed,) * 5), RowSample("b", (other,) * 5)], Share(), draws=2000)
    over_examples = float((fixed - other).std(ddof=1)) / 20
    spread = statistics._spread_of_difference(many.rows["a"], many.rows["b"])
    assert spread.error == pytest.approx(over_examples, rel=0.06)
    assert spread.freedom == pytest.approx(399, rel=0.01)  # seeds that add nothing cost no degrees of freedom


def test_seeds_are_each_rows_own() -> None:
    """5 seeds of each of two rows know their spread by nearly 8 degrees of freedom, and not by 4 of their pairs."""
    steady = statistics._combined(0.0, [(1.0, 0.0, 5), (1.0, 0.0, 5)], 500)
    assert (steady.error, steady.freedom) == (pytest.approx(2**0.5), pytest.approx(7.0))
    uneven = statistics._combined(0.0, [(1.0, 0.0, 5), (0.0, 0.0, 5)], 500)
    assert uneven.freedom == pytest.approx(3.5)
    runs = tuple(hits(0.8, seed) for seed in range(5))
    boot = bootstrap([RowSample("a", runs), RowSample("b", runs)], Share(), draws=500)
    again = bootstrap([RowSample("a", runs), RowSample("b", runs[::-1])], Share(), draws=500)
    one, two = (statistics._spread_of_difference(found.rows["a"], found.rows["b"]) for found in (boot, again))
    assert one.error == pytest.approx(two.error)


def test_noise_of_seed_and_example_is_counted_once() -> None:
    within = statistics._combined(4.0, [(1.0, 1.5, 5), (1.0, 0.6, 5)], 500)
    assert (within.error, within.freedom) == (2.0, pytest.approx(499))
    beyond = statistics._combined(4.0, [(3.0, 1.0, 5), (3.0, 1.0, 5)], 500)
    assert beyond.error == pytest.approx(8**0.5)
    assert beyond.freedom == pytest.approx(1 / (0.75 / 7 + 0.25 / 499))  # three quarters of the whole are of seeds


@pytest.mark.parametrize("rows", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_ten_seeds_and_two_thousand_examples_are_quick_and_small(rows: int) -> None:
    samples = [RowSample(name, tuple(hits(0.8, seed, 2000) for seed in range(10))) for name in "abcdefgh"[:rows]]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    bootstrap(samples, Share()).differences()
    assert time.process_time() - start < {2: 10, 8: 25}[rows]  # processor seconds of all threads
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200_000  # kB
