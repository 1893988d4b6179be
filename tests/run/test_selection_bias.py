"""The bias of the highest of several validation scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from graftwork.core.configured_methods import configured
from graftwork.core.run import Recipe
from graftwork.registry import metrics
from graftwork.run import selection_bias as module
from graftwork.run.execute import execute
from graftwork.run.score_interval import BIAS
from graftwork.run.selection_bias import selection_bias
from graftwork.run.session import Session

ACCURACY = metrics.get("accuracy")


def answers(random: np.random.Generator, rows: int, accuracies: list[float]) -> list[NDArray[np.float64]]:
    """Whether answers are right, with these probabilities, each independently."""
    return [(random.random((rows, 1)) < accuracy).astype(np.float64) for accuracy in accuracies]


@pytest.mark.parametrize("rows", [60, 250])
@pytest.mark.parametrize("accuracies", [[0.7] * 2, [0.7] * 40, [0.9, 0.5, 0.5, 0.5]], ids=["two", "forty", "one clear"])
def test_it_is_how_far_the_highest_is_above_what_it_is_worth(rows: int, accuracies: list[float]) -> None:
    random, estimated, true = np.random.default_rng(1), [], []
    for _ in range(60):
        tried = answers(random, rows, accuracies)
        scores = [float(one.mean()) for one in tried]
        estimated.append(selection_bias(ACCURACY, tried))
        true.append(max(scores) - accuracies[int(np.argmax(scores))])
    assert np.mean(estimated) == pytest.approx(np.mean(true), rel=0.2, abs=0.008)  # the mean of 60 is known to 0.006


def test_nothing_is_chosen_among_equal_predictions() -> None:
    one, other = answers(np.random.default_rng(0), 50, [0.7, 0.7])
    assert selection_bias(ACCURACY, []) is None and selection_bias(ACCURACY, [one]) is None
    assert selection_bias(ACCURACY, [one, one.copy()]) is None and selection_bias(ACCURACY, [one, one, other]) > 0
    assert selection_bias(ACCURACY, [one, one, other]) == selection_bias(ACCURACY, [one, other])


def test_it_is_not_estimated_on_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = answers(np.random.default_rng(0), 50, [0.7, 0.7])
    monkeypatch.setattr(module, "MOST_ROWS", 49)
    assert selection_bias(ACCURACY, tried) is None


@pytest.mark.parametrize("name", ["linear_probe", "full"])
def test_a_run_states_it_whatever_ran_before(name: str, open_tiny: Callable[..., Session]) -> None:
    """The convex fits of a probe are made once for all runs of a session; what they scored is remembered."""
    session = open_tiny()
    found = [execute(session, configured(name, {}), Recipe(), seed, lambda done, text: None)[0] for seed in (0, 1)]
    assert BIAS in found[0].facts and 0 <= found[0].facts[BIAS] < 0.5
    if name == "linear_probe":
        assert found[1].facts[BIAS] == found[0].facts[BIAS]


@pytest.mark.parametrize("name", ["majority", "average"])
def test_what_was_not_chosen_by_its_score_has_none(name: str, open_tiny: Callable[..., Session]) -> None:
    """The mean of several weights is none of those that were scored."""
    session = open_tiny()
    result, _ = execute(session, configured(name, {}), Recipe(), 0, lambda done, text: None)
    assert result.status == "ok"
    assert BIAS not in result.facts
