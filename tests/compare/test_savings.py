"""Labels that transfer saves: read off curves whose answer is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graftwork.compare.savings import MethodCurve, labels_needed, saving, savings, sentence

ROWS = np.array([10.0, 100.0, 1000.0])
SIZES = ("10%", "30%", "100%")


def line(name: str, *means: float, spread: float = 0.0, draws: int = 5) -> MethodCurve:
    noise = spread * np.linspace(-1, 1, draws)
    return MethodCurve(name, SIZES, ROWS, np.array(means)[:, None] + noise)


def test_between_two_sizes_on_a_logarithmic_axis() -> None:
    assert labels_needed(ROWS, [0.2, 0.4, 0.8], 0.6) == pytest.approx(math.sqrt(100 * 1000))
    assert labels_needed(ROWS, [0.2, 0.4, 0.8], 0.4) == pytest.approx(100)
    assert labels_needed(ROWS, [0.2, 0.4, 0.8], 0.1) == 10
    assert labels_needed(ROWS, [0.2, 0.4, 0.8], 0.9) == math.inf
    assert labels_needed(ROWS, [0.2, 0.5, 0.3], 0.4) == pytest.approx(10 * 10 ** (2 / 3))  # the first time counts


def test_what_the_other_needs() -> None:
    found = saving(line("probe", 0.6, 0.7, 0.8), 0, line("svm", 0.2, 0.4, 0.8))
    assert found.needed == pytest.approx(math.sqrt(100 * 1000)) and found.times == pytest.approx(found.needed / 10)
    assert found.low == found.high == found.needed and found.reached == 1.0 and not found.at_most
    told = sentence(vars(found), "accuracy")
    assert told.startswith("probe with 10 rows (10%) reaches accuracy 60.0; svm needs 316 for that, 31.6 times as many")


def test_not_reached_and_reached_at_once() -> None:
    probe, svm = line("probe", 0.6, 0.7, 0.9), line("svm", 0.1, 0.2, 0.3)
    none = saving(probe, 0, svm)
    assert none.needed is None and none.times is None and none.reached == 0.0
    assert "svm does not reach that with the largest size, 1,000 (nor in any resample of the draws)" in sentence(
        vars(none), "f1"
    )
    once = saving(svm, 0, probe)
    assert (
        once.at_most
        and once.needed == 10
        and sentence(vars(once), "f1").endswith("with its smallest size, 10 (at most)")
    )
    wide = vars(once) | {"high": 40.0}
    assert sentence(wide, "f1").endswith("(95 % interval over draws: at most 10 to 40)")


def test_what_few_resamples_reach_has_no_interval() -> None:
    seldom = MethodCurve("svm", SIZES, ROWS, np.array([[0.1] * 5, [0.2] * 5, [0.7, 0.55, 0.55, 0.55, 0.55]]))
    found = saving(line("probe", 0.66, 0.7, 0.9), 0, seldom)
    assert found.needed is found.low is found.high is None and 0 < found.reached < 0.025  # type: ignore[operator]
    assert f"(it does in {100 * found.reached:.1f} % of the resamples of the draws)" in sentence(vars(found), "f1")


def test_an_interval_that_ends_at_not_reached() -> None:
    """The mean curve just reaches it; many resamples of its draws do not."""
    noisy = MethodCurve("svm", SIZES, ROWS, np.array([[0.1] * 5, [0.3] * 5, [0.4, 0.5, 0.6, 0.7, 0.8]]))
    found = saving(line("probe", 0.6, 0.7, 0.9), 0, noisy)
    assert found.needed is not None and found.reached is not None and 0.3 < found.reached < 0.9
    assert found.low is not None and found.low < 1000 and found.high is None
    assert "to not reached" in sentence(vars(found), "f1")


def test_draws_are_paired_and_few_of_them_give_no_interval() -> None:
    """Luck that both share does not widen the interval."""
    shared = saving(line("probe", 0.3, 0.7, 0.9, spread=0.05), 0, line("svm", 0.2, 0.4, 0.8, spread=0.05))
    assert shared.low == pytest.approx(shared.needed) and shared.high == pytest.approx(shared.needed)
    apart = saving(line("probe", 0.3, 0.7, 0.9, spread=-0.05), 0, line("svm", 0.2, 0.4, 0.8, spread=0.05))
    assert apart.low < apart.needed * 0.9 and apart.high > apart.needed * 1.1  # type: ignore[operator]
    two = saving(line("probe", 0.6, 0.7, 0.8, draws=2), 0, line("svm", 0.2, 0.4, 0.8, draws=2))
    assert two.reached is None and two.low is None and "interval" not in sentence(vars(two), "f1")


def points(method: str, *means: float, failed: int = 0) -> list[dict[str, Any]]:
    """As in a `curve.json`: two draws at each size."""
    return [
        {
            "method": method,
            "size": size,
            "rows": rows,
            "n_draws": 2,
            "n_failed": failed,
            "by_draw": {"0": {"f1": mean}, "1": {"f1": mean}},
        }
        for size, rows, mean in zip(SIZES, ROWS, means, strict=False)
    ]


METHODS = [{"method": name, "transfers": name == "probe"} for name in ("majority", "svm", "probe", "fresh")]


def test_every_size_but_the_largest() -> None:
    found = savings(points("probe", 0.3, 0.7, 0.9) + points("svm", 0.2, 0.4, 0.8), METHODS, "f1")
    assert [(one["method"], one["reference"], one["size"]) for one in found] == [
        ("probe", "svm", "10%"),
        ("probe", "svm", "30%"),
    ]


def test_sizes_where_the_reference_goes_on_alone() -> None:
    """Each pair is read at every size beyond which the reference was tried, and at no other."""
    given = points("svm", 0.2, 0.4, 0.8) + points("probe", 0.3, 0.7) + points("fresh", 0.1)
    found = savings(given + points("majority", 0.1, 0.1, 0.1), METHODS, "f1")
    assert [(one["reference"], one["size"]) for one in found] == [("svm", "10%"), ("svm", "30%")]
    assert found[1]["needed"] == pytest.approx(10**2.75) and found[1]["most"] == 1000


def test_a_method_of_which_a_run_failed_is_not_read() -> None:
    failed = points("svm", 0.2, 0.4, 0.8, failed=1)
    assert savings(points("probe", 0.3, 0.7, 0.9) + failed, METHODS, "f1") == []
