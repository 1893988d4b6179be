"""The two-sample test: right under no difference, blind to nothing that is large, and its figures are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, mannwhitneyu
from sklearn.metrics import roc_auc_score

from graftwork.evaluate.two_sample import LEVEL, TwoSample, _areas, _standard_error, two_sample


def compared(shift: float, rows: int = 60, width: int = 10, seed: int = 0, other: int | None = None) -> TwoSample:
    """Normal features, the first of them moved by `shift` deviations in the second set."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(rows, width)), random.normal(size=(other or rows, width))
    b[:, 0] += shift
    return two_sample(a, b, np.arange(len(a) + len(b)), seed)


def test_a_large_difference_is_found() -> None:
    found = compared(3.0)
    assert found.p == 0.001
    assert found.low < found.auc < found.high and found.low > 0.9
    assert found.accuracy > 0.85
    assert 0.98 > found.auc - 0.003 > 0.9  # of two normals 3 deviations apart it is 0.983


def test_ratios_grow_towards_the_new_side() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(300, 4)), random.normal(size=(300, 4))
    b[:, 0] += 2
    found = two_sample(a, b, np.arange(600))
    assert np.corrcoef(np.log(found.ratios), b[:, 0])[0, 1] > 0.95
    # the true logarithm of the ratio is 2 x - 2
    assert np.polyfit(b[:, 0], np.log(found.ratios), 1)[0] == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize(("runs", "rows", "width"), [(40, 25, 8), pytest.param(400, 60, 100, marks=pytest.mark.slow)])
def test_no_difference_is_found_as_rarely_as_promised(runs: int, rows: int, width: int) -> None:
    alarms = sum(compared(0.0, rows, width, seed=seed, other=2 * rows).p < LEVEL for seed in range(runs))
    assert alarms <= binom.ppf(0.99, runs, 0.05)


@pytest.mark.slow
def test_the_smallest_difference_is_found_in_most_cases() -> None:
    found = [compared(0.9, seed=seed) for seed in range(25)]
    mean, smallest = np.mean([one.auc for one in found]), np.mean([one.smallest for one in found])
    assert mean > smallest  # so more than 80 of 100 are to be found
    assert sum(one.p < LEVEL for one in found) >= 18
    assert compared(0.0, rows=400).smallest < compared(0.0, rows=40).smallest


def test_equal_rows_on_both_sides_are_no_difference() -> None:
    features = np.random.default_rng(0).normal(size=(50, 5))
    found = two_sample(features, features, np.tile(np.arange(50), 2))
    assert found.p >= LEVEL and found.auc == pytest.approx(0.5, abs=1e-9)
    assert two_sample(np.zeros((30, 3)), np.zeros((30, 3)), np.arange(60)).p >= LEVEL


def test_it_is_deterministic() -> None:
    assert compared(0.5).p == compared(0.5).p and compared(0.5).auc == compared(0.5).auc


def test_areas_are_those_of_scikit_learn_and_their_error_that_of_independent_rows() -> None:
    random = np.random.default_rng(0)
    scores, new = np.round(random.normal(size=(80, 3)), 1), random.random((80, 3)) < 0.4
    assert _areas(scores, new) == pytest.approx([roc_auc_score(new[:, k], scores[:, k]) for k in range(3)])
    assert _standard_error(0.5, 40, 60) == pytest.approx((101 / (12 * 40 * 60)) ** 0.5, rel=0.01)
    assert mannwhitneyu(scores[new[:, 0], 0], scores[~new[:, 0], 0]).statistic == pytest.approx(
        _areas(scores, new)[0] * new[:, 0].sum() * (~new[:, 0]).sum()
    )


def test_rows_of_one_cluster_tell_nothing() -> None:
    features = np.random.default_rng(0).normal(size=(60, 4))
    found = two_sample(features[:30], features[30:], np.zeros(60, dtype=np.int64))
    assert found.auc == 0.5 and found.p == 1.0
