"""The violation is the integral it says it is, and its bound behaves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from graftwork.compare.stochastic_order import Dominance, _violations, almost_stochastic_order


def epsilon(a: list[float] | np.ndarray, b: list[float] | np.ndarray) -> float:
    return almost_stochastic_order(a, b).epsilon


def integrated(a: np.ndarray, b: np.ndarray, steps: int = 200_000) -> float:
    """The definition, by the midpoint rule over quantiles that are looked up one by one."""
    t = (np.arange(steps) + 0.5) / steps
    apart = np.quantile(a, t, method="inverted_cdf") - np.quantile(b, t, method="inverted_cdf")
    return float((apart[apart < 0] ** 2).sum() / (apart**2).sum())


def test_one_that_dominates_has_no_violation() -> None:
    assert almost_stochastic_order([0.9, 0.91, 0.92], [0.8, 0.85, 0.89]) == Dominance(0.0, 0.0, 0.95)
    assert almost_stochastic_order([0.8, 0.85, 0.89], [0.9, 0.91, 0.92]) == Dominance(1.0, 1.0, 0.95)


def test_a_shift_dominates_however_small() -> None:
    runs = np.random.default_rng(0).normal(0.8, 0.01, 9)
    assert epsilon(runs + 1e-6, runs) == 0.0


def test_the_same_runs_say_nothing() -> None:
    runs = np.random.default_rng(1).normal(0.8, 0.01, 8)
    found = almost_stochastic_order(runs, runs[::-1])
    assert found.epsilon == 0.5
    assert found.epsilon_min > 0.8  # resamples of one sample lie on either side


def test_constants() -> None:
    assert almost_stochastic_order([0.9] * 5, [0.8] * 5) == Dominance(0.0, 0.0, 0.95)
    assert almost_stochastic_order([0.8] * 5, [0.8] * 5) == Dominance(0.5, 0.5, 0.95)


def test_equal_means_and_unequal_spreads_violate_by_half() -> None:
    assert epsilon([-1, 0, 1], [-3, 0, 3]) == 0.5
    assert epsilon([-1, 0, 1], [-0.1, 0, 0.1]) == 0.5


def test_by_hand() -> None:
    # quantiles 1 | 4 against 2 | 3 on halves: (1 - 2)^2 against, (4 - 3)^2 for
    assert epsilon([1, 4], [3, 2]) == 0.5
    # 0 0 0 | 6 6 6 against 1 1 | 1 1 | 5 5, in sixths: 3 of 1 against; 25 for and 1 + 1 for
    assert epsilon([0, 6], [1, 1, 5]) == pytest.approx(3 / (3 + 25 + 2))


@pytest.mark.parametrize(("apart", "sds"), [(0.5, (1.0, 2.0)), (1.0, (1.0, 1.5)), (0.2, (2.0, 0.5))])
def test_normal_distributions_have_a_closed_form(apart: float, sds: tuple[float, float]) -> None:
    """A^-1 - B^-1 = d + s z of a standard normal z: E[(d + s z)^2; d + s z < 0] over d^2 + s^2."""
    t = (np.arange(4000) + 0.5) / 4000
    a, b = norm.ppf(t, apart, sds[0]), norm.ppf(t, 0, sds[1])
    s = abs(sds[0] - sds[1])
    k = apart / s
    closed = norm.cdf(-k) - apart * s * norm.pdf(k) / (apart**2 + s**2)
    assert quad(lambda z: (apart + s * z) ** 2 * norm.pdf(z), -40, -k)[0] / (apart**2 + s**2) == pytest.approx(closed)
    assert float(_violations(a[None], b[None])[0]) == pytest.approx(closed, abs=2e-3)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 10), (7, 3), (1, 4)])
def test_it_is_the_integral_of_its_definition(n: int, m: int) -> None:
    random = np.random.default_rng([n, m])
    a, b = random.normal(0.3, 1, n), random.normal(0, 1.5, m)
    assert epsilon(a, b) == pytest.approx(integrated(a, b), abs=1e-4)


def test_the_two_directions_add_up() -> None:
    random = np.random.default_rng(4)
    a, b = random.normal(size=6), random.normal(size=9)
    assert epsilon(a, b) + epsilon(b, a) == pytest.approx(1)


def test_more_confidence_is_a_higher_bound_and_more_runs_a_lower_one() -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(1, 1, 40), random.normal(0, 1, 40)
    few = [almost_stochastic_order(a[:5], b[:5], confidence=level).epsilon_min for level in (0.9, 0.95, 0.999)]
    assert few == sorted(few) and few[0] < few[2]
    assert almost_stochastic_order(a, b).epsilon_min < 0.5


def test_equal_methods_are_seldom_ordered() -> None:
    """At 10 runs and 95 %; the bound is asymptotic, so it is not held to 5 % here (explanation/statistics.md)."""
    random = np.random.default_rng(6)
    bounds = [almost_stochastic_order(*random.normal(size=(2, 10)), seed=at).epsilon_min for at in range(150)]
    assert np.mean(np.array(bounds) < 0.2) < 0.12


def test_no_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="need scores"):
        almost_stochastic_order([], [1.0])
