"""The posterior: what runs show, joined with what was expected; and what one more run is worth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from graftwork.decision.choice import choose, parse_worth
from graftwork.decision.next_run import as_if_finished, best_next, expected_gain
from graftwork.decision.posterior import FLATTERED, TOP, Posterior, RunScore, expected, posterior, unflattered
from graftwork.decision.prior import LEVEL, Belief, Sizes
from graftwork.decision.traits import FLOOR, FROZEN, TUNED, Arm
from graftwork.errors import ConfigError

FLOOR_ARM, PROBE, SMALL, FULL = (
    Arm("majority", "majority", FLOOR), Arm("linear_probe", "linear_probe", FROZEN),
    Arm("lora", "lora", TUNED), Arm("full", "full", TUNED),
)  # fmt: skip
ARMS = (FLOOR_ARM, PROBE, SMALL, FULL)
PRICES = {FLOOR_ARM: 0.0, PROBE: 1.0, SMALL: 5.0, FULL: 10.0}
ROWS, SPREAD = 400, 0.4


def belief(means: tuple[float, ...] = (0.3, 0.8, 0.82, 0.83), own: float = 0.02) -> Belief:
    """Means, independent deviations of `own`, and a level that is unknown."""
    covariance = np.full((4, 4), (LEVEL * SPREAD) ** 2) + np.eye(4) * own**2
    return Belief(ARMS, np.array(means), covariance)


def look(arm: Arm, score: float, seed: int = 0, deviation: float = 0.015) -> RunScore:
    return RunScore(arm, score, score + np.random.default_rng(seed).normal(0, deviation, 500), False)


def joined(run_scores: list[RunScore], own: float = 0.02, rows: int = ROWS) -> Posterior:
    return posterior(belief(own=own), run_scores, rows, SPREAD, Sizes())


def test_without_runs_it_is_the_prior() -> None:
    there = joined([])
    assert there.scores.mean.tolist() == [0.3, 0.8, 0.82, 0.83] and there.ran == frozenset()
    assert there.scores.difference(3, 1)[0] == pytest.approx(0.03)


def test_a_run_moves_the_difference_as_far_as_it_is_known() -> None:
    few = joined([look(PROBE, 0.8), look(FULL, 0.93, 1)], rows=20)
    many = joined([look(PROBE, 0.8), look(FULL, 0.93, 1)], rows=5000)
    assert 0.03 < few.gain(FULL, PROBE)[0] < many.gain(FULL, PROBE)[0] < 0.13


def test_what_keeping_the_best_epoch_adds_is_taken_off() -> None:
    runs = [
        look(FLOOR_ARM, 0.4, 2, 0.1),
        look(PROBE, 0.8, 0, 0.01),
        replace(look(FULL, 0.9, 1, 0.03), kept_best_epoch=True),
    ]
    error = math.sqrt(np.mean([one.draws.var() for one in runs[1:]]))  # of all but the majority class
    assert unflattered(runs).tolist() == pytest.approx([0.4, 0.8, 0.9 - FLATTERED * error])
    asis = [replace(one, kept_best_epoch=False) for one in runs]
    assert joined(runs).gain(FULL, PROBE)[0] < joined(asis).gain(FULL, PROBE)[0]
    all_do = [replace(one, kept_best_epoch=True) for one in runs[1:]]
    assert joined(all_do).gain(FULL, PROBE)[0] == pytest.approx(joined(asis[1:]).gain(FULL, PROBE)[0], rel=1e-3)
    assert unflattered([]).tolist() == [] and unflattered(runs[:1]).tolist() == [0.4]


def test_more_seeds_are_believed_more() -> None:
    once = joined([look(PROBE, 0.8), look(FULL, 0.9, 1)])
    thrice = joined([look(PROBE, 0.8), *(look(FULL, 0.9, seed) for seed in (1, 2, 3))])
    assert thrice.gain(FULL, PROBE)[0] > once.gain(FULL, PROBE)[0]
    width = [there.gain(FULL, PROBE)[2] - there.gain(FULL, PROBE)[1] for there in (once, thrice)]
    assert width[1] < width[0]


def test_a_shortfall_is_what_the_best_of_each_draw_scores_above() -> None:
    there = joined([look(PROBE, 0.8), look(FULL, 0.9, 1)])
    mean, low, high = there.shortfall(PROBE)
    assert 0 <= low <= mean <= high and mean > there.shortfall(FULL)[0]
    assert there.shortfall(FLOOR_ARM)[0] == pytest.approx(0.5, abs=0.1)


def test_no_score_is_above_the_top() -> None:
    """A method that is right on every row leaves little to gain, whatever a dearer one gained elsewhere."""
    right = [RunScore(FLOOR_ARM, 0.5, np.full(500, 0.5), False), RunScore(PROBE, 1.0, np.ones(500), False)]
    there = joined(right, rows=1000)
    assert there.mean[3] > 1.02 and there.draws.max() == TOP
    assert there.shortfall(PROBE)[0] < 0.003 and there.gain(FULL, PROBE)[0] < 0.003
    assert 0 < expected_gain(there, FULL, there.ran) < 0.003
    few = joined(right, rows=20)
    assert few.shortfall(PROBE)[0] > there.shortfall(PROBE)[0]  # few rows prove less


def test_expected_scores_are_those_of_draws() -> None:
    mean, deviation = np.array([0.9, 0.999, 1.1]), np.array([0.02, 0.03, 0.05])
    drawn = np.minimum(np.random.default_rng(0).normal(mean, deviation, (200_000, 3)), TOP).mean(axis=0)
    assert expected(mean, deviation) == pytest.approx(drawn, abs=2e-4)


def test_rows_that_all_answer_alike_are_no_certainty() -> None:
    alike = [RunScore(PROBE, 1.0, np.ones(500), False), RunScore(FULL, 1.0, np.ones(500), False)]
    there = joined(alike, rows=30)
    low, high = there.gain(FULL, PROBE)[1:]
    assert high - low > 0.01


def test_the_cheapest_that_is_worth_it_is_chosen() -> None:
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8), look(SMALL, 0.829, 1), look(FULL, 0.831, 2)], own=0.01)
    assert choose(there, PRICES, 0.02).chosen == SMALL
    assert choose(there, PRICES, 0.0).chosen == FULL
    cheap = choose(there, PRICES, 0.2)
    assert cheap.chosen == PROBE and cheap.within and cheap.cheaper is None
    assert choose(there, PRICES, 0.0).cheaper in (PROBE, SMALL)
    assert not choose(there, PRICES, 0.0).within


def test_of_those_that_are_as_cheap_the_best_is_chosen() -> None:
    there = joined([look(PROBE, 0.8), look(SMALL, 0.829, 1), look(FULL, 0.831, 2)], own=0.01)
    assert choose(there, {PROBE: 1.0, SMALL: 5.0, FULL: 5.5}, 0.02).chosen == FULL
    assert choose(there, {PROBE: 1.0, SMALL: 5.0, FULL: 7.0}, 0.02).chosen == SMALL


@pytest.mark.parametrize("worth", [0.0, 0.002, 0.004, 0.006, 0.01, 0.02, 0.05])
def test_within_is_said_of_the_chosen_one(worth: float) -> None:
    there = joined([look(PROBE, 0.82), look(SMALL, 0.829, 1), look(FULL, 0.831, 2)], own=0.01)
    choice = choose(there, PRICES, worth)
    assert choice.within == (there.shortfall(choice.chosen)[0] <= worth)


def test_only_what_has_run_can_be_chosen() -> None:
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)])
    chosen = choose(there, PRICES, 0.005)
    assert chosen.chosen == PROBE and not chosen.within and set(chosen.rivals) == {SMALL, FULL}


def test_the_majority_only_where_nothing_gains() -> None:
    even = Belief(ARMS, np.array([0.8, 0.8, 0.8, 0.8]), belief().covariance)
    worse = [look(FLOOR_ARM, 0.8), look(PROBE, 0.7), look(SMALL, 0.72, 1), look(FULL, 0.71, 2)]
    there = posterior(even, worse, 5000, SPREAD, Sizes())
    assert choose(there, PRICES, 0.5).chosen == FLOOR_ARM
    better = posterior(even, [look(FLOOR_ARM, 0.8), look(PROBE, 0.801)], 50, SPREAD, Sizes())
    assert choose(better, PRICES, 0.9).chosen == PROBE  # however little it is worth


@pytest.mark.parametrize("points", [-1, float("nan"), float("inf"), 101])
def test_what_is_no_worth_is_told(points: float) -> None:
    with pytest.raises(ConfigError, match="--worth, the points by which"):
        parse_worth(points)
    assert parse_worth(0) == 0 and parse_worth(0.5) == 0.005


def test_a_run_is_worth_what_it_may_change() -> None:
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)])
    open_to = (FLOOR_ARM, PROBE)
    assert expected_gain(there, FULL, open_to) > expected_gain(there, SMALL, open_to) > 0
    sure = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)], own=1e-6)
    assert expected_gain(sure, PROBE, open_to) < 1e-6  # it is the best of these already, however it comes out
    assert expected_gain(there, FLOOR_ARM, open_to) < 1e-6
    assert expected_gain(there, FULL, ()) == float("inf")


def test_a_run_on_its_way_is_worth_less_a_second_time() -> None:
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)])
    after = as_if_finished(there, FULL)
    assert after.ran == there.ran | {FULL} and after.mean.tolist() == there.mean.tolist()
    assert expected_gain(after, FULL, after.ran) < expected_gain(there, FULL, there.ran)


def test_the_next_run_gains_most_for_its_time_or_there_is_none() -> None:
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)])
    seconds = {PROBE: 1.0, SMALL: 5.0, FULL: 1000.0}
    found = best_next(there, seconds, {}, 3, price=0.0)
    assert found is not None and found[0] == SMALL
    assert best_next(there, seconds, {SMALL: 3, FULL: 3, PROBE: 3}, 3, price=0.0) is None
    assert best_next(there, seconds, {}, 3, price=1.0) is None
    assert best_next(there, {FULL: 1000.0}, {}, 3, price=1e-6) == (FULL, pytest.approx(0.03, abs=0.01))


def test_a_run_that_the_largest_makes_needless_is_skipped() -> None:
    """Where the time left is better spent on the largest again, or does not pay for both."""
    there = joined([look(FLOOR_ARM, 0.3), look(PROBE, 0.8)])
    seconds = {SMALL: 5.0, FULL: 1000.0}

    def first(left: float = math.inf, again: float = 0.0) -> Arm:
        found = best_next(there, seconds, {}, 3, price=0.0, left=left, again={FULL: again, SMALL: 1.0})
        assert found is not None
        return found[0]

    after = expected_gain(as_if_finished(there, FULL), SMALL, (FLOOR_ARM, PROBE, FULL))
    assert first() == first(left=1005) == first(again=0.9 * after / 5) == SMALL
    assert first(left=1004) == first(again=1.1 * after / 5) == FULL


def test_intervals_of_a_shortfall_hold_the_truth_as_often_as_they_say() -> None:
    random, sizes, inside = np.random.default_rng(0), Sizes(), 0
    for _ in range(400):
        truth = belief().mean + random.normal(0, 0.02, 4)
        rows = np.sqrt(SPREAD**2 / ROWS * (1 - sizes.paired)) * random.normal(size=4)
        luck = SPREAD * np.array([sizes.seed_other, sizes.seed_other, sizes.seed_tuned, sizes.seed_tuned])
        shown = truth + rows + luck * random.normal(size=4)
        deviation = np.sqrt(SPREAD**2 / ROWS)
        shared = random.normal(0, deviation * np.sqrt(sizes.paired), 500)
        draws = [score + shared + random.normal(0, deviation * np.sqrt(1 - sizes.paired), 500) for score in shown]
        there = posterior(belief(), list(map(RunScore, ARMS, shown, draws, [False] * 4)), ROWS, SPREAD, sizes)
        low, high = there.gain(FULL, PROBE)[1:]
        inside += low <= truth[3] - truth[1] <= high
    assert 0.85 < inside / 400 < 0.95
