"""How far a validation score can be trusted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graftwork.core.configured_methods import parse_method
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.run import score_interval
from graftwork.run.execute import execute
from graftwork.run.score_interval import (
    DRAWS,
    Evidence,
    RowTally,
    evidence_of,
    validation_evidence,
    weigh,
    weigh_together,
)
from graftwork.run.session import Session
from graftwork.run.store import read_logits

ROWS = 200


def right(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The statistics of accuracy (N, 1) when these rows are answered well."""
    return np.isin(np.arange(ROWS), rows).astype(np.float64)[:, None]


def test_a_score_and_its_interval() -> None:
    found = weigh(right(np.arange(160)), metrics.get("accuracy"))
    assert found.score == 0.8
    error = (0.8 * 0.2 / ROWS) ** 0.5
    assert found.interval == pytest.approx((0.8 - 1.96 * error, 0.8 + 1.96 * error), abs=0.01)
    assert np.array_equal(found.draws, weigh(right(np.arange(160)), metrics.get("accuracy")).draws)


def test_a_gain_is_paired() -> None:
    """Two points more on the same rows are sure; two points more on other rows are not."""
    metric = metrics.get("accuracy")
    base = weigh(right(np.arange(160)), metric)
    more = weigh(right(np.arange(172)), metric)
    other = weigh(right(np.arange(28, 200)), metric)
    assert more.gain_over(base)[0] > 0 > base.gain_over(more)[0]
    assert more.score == other.score and other.gain_over(base)[0] <= 0
    assert base.gain_over(base) == (0.0, 0.0)
    low, high = more.gain_over(base)
    assert low < more.score - base.score < high


def test_rows_that_are_all_alike_are_no_certainty() -> None:
    alike = weigh(np.ones((7, 1)), metrics.get("accuracy"))
    assert alike.interval == (1.0, 1.0) and alike.spread is None


def test_rounding_is_no_gain() -> None:
    draws = np.linspace(0.5, 0.6, DRAWS)
    one, other = Evidence(0.55, draws + 1e-16), Evidence(0.55, draws)
    assert (one.draws > other.draws).all()
    assert one.gain_over(other) == (0.0, 0.0)
    assert Evidence(0.55, np.where(draws < 0.52, 0.55, 0.55 + 1e-16)).spread is None


def scored(rows: int, classes: int = 5) -> dict[str, NDArray[np.float64]]:
    """Metric -> the statistics of made-up answers, right in nine of ten."""
    random = np.random.default_rng(3)
    targets = random.integers(0, classes, rows)
    found = np.where(random.random(rows) < 0.9, targets, random.integers(0, classes, rows))
    task = Task("made up", Path(), labels=tuple(map(str, range(classes))))
    statistics = {name: metrics.get(name).statistics(targets, found, task) for name in ("accuracy", "macro_f1")}
    numbers = targets.astype(np.float64), targets + random.normal(size=rows)
    return statistics | {"pearson": metrics.get("pearson").statistics(*numbers, task)}


def drawn_row_by_row(name: str, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    random, rows = np.random.default_rng(0), len(statistics)
    means = [statistics[random.integers(0, rows, rows)].mean(axis=0) for _ in range(DRAWS)]
    return metrics.get(name).value(np.stack(means))


@pytest.mark.parametrize("block", [24_000_000, 8 * 150 * 7, 1])
def test_draws_are_those_of_the_rows_themselves(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of counts to the last bit, however many draws are held at once and whatever else is drawn with them."""
    monkeypatch.setattr(score_interval, "BLOCK_BYTES", block)
    statistics = scored(150)
    together = weigh_together([(RowTally.of(rows), metrics.get(name)) for name, rows in statistics.items()])
    for found, (name, rows) in zip(together, statistics.items(), strict=True):
        assert np.array_equal(found.draws, weigh(rows, metrics.get(name)).draws)
        assert found.score == float(metrics.get(name).value(rows.mean(axis=0)))
        expected = drawn_row_by_row(name, rows)
        assert np.allclose(found.draws, expected, rtol=0, atol=1e-12 if name == "pearson" else 0)


def test_rows_that_are_alike_are_kept_once() -> None:
    statistics = scored(20_000)["macro_f1"]
    tally = RowTally.of(statistics)
    assert len(tally.rows) <= 25 and np.array_equal(tally.rows[tally.places], statistics)
    random = np.random.default_rng(0)
    other = np.where(random.random((20_000, 1)) < 0.2, statistics[::-1], statistics)
    assert np.array_equal(tally.differing(RowTally.of(other)), (statistics != other).any(axis=1))


def test_wide_statistics_cost_no_more_than_narrow_ones() -> None:
    """A draw counts rows and does not copy them: of 180 columns it took fifty times as long as of one."""
    statistics, seconds = scored(10_000, 60), {}
    for name in ("accuracy", "macro_f1", "accuracy"):
        began = time.process_time()
        weigh(statistics[name], metrics.get(name))
        seconds[name] = time.process_time() - began
    assert seconds["macro_f1"] < 10 * seconds["accuracy"]


def test_it_is_of_the_rows_of_a_split(open_tiny: Callable[..., Session]) -> None:
    session = open_tiny()
    result, _ = execute(session, parse_method("majority"), Recipe(), 0, lambda done, text: None)
    found = validation_evidence(session.dataset, session.store.root / result.id)
    assert found.score == result.validation[session.dataset.task.metrics[0]]
    tested = evidence_of(session.dataset, "test", read_logits(session.store.root / result.id, "test"))
    assert tested.score == result.scores[session.dataset.task.metrics[0]]
    assert result.interval == tested.spread is not None
    assert len(session.dataset.test.examples) != len(session.dataset.validation.examples)
