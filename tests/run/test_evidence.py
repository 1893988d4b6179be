"""How far a validation score can be trusted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from graftwork.core.run import Recipe
from graftwork.registry import metrics
from graftwork.run.evidence import evidence_of, validation_evidence, weigh
from graftwork.run.execute import execute
from graftwork.run.methods import parse_method
from graftwork.run.shop import Shop
from graftwork.run.store import read_logits

ROWS = 200


def right(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The statistics of accuracy (N, 1) when these rows are answered well."""
    return np.isin(np.arange(ROWS), rows).astype(np.float64)[:, None]


def test_a_score_and_its_interval() -> None:
    evidence = weigh(right(np.arange(160)), metrics.get("accuracy"))
    assert evidence.score == 0.8
    error = (0.8 * 0.2 / ROWS) ** 0.5
    assert evidence.interval == pytest.approx((0.8 - 1.96 * error, 0.8 + 1.96 * error), abs=0.01)
    assert np.array_equal(evidence.draws, weigh(right(np.arange(160)), metrics.get("accuracy")).draws)


def test_a_gain_is_paired() -> None:
    """Two points more on the same rows are sure; two points more on other rows are not."""
    metric = metrics.get("accuracy")
    base = weigh(right(np.arange(160)), metric)
    more = weigh(right(np.arange(172)), metric)
    other = weigh(right(np.arange(28, 200)), metric)
    assert more.beats(base) and not base.beats(more)
    assert more.score == other.score and not other.beats(base)
    assert not base.beats(base)
    low, high = more.gain_over(base)
    assert low < more.score - base.score < high


def test_rows_that_are_all_alike_are_no_certainty() -> None:
    alike = weigh(np.ones((7, 1)), metrics.get("accuracy"))
    assert alike.interval == (1.0, 1.0) and alike.spread is None


def test_it_is_of_the_rows_of_a_split(open_tiny: Callable[..., Shop]) -> None:
    shop = open_tiny()
    result, _ = execute(shop, parse_method("majority"), Recipe(), 0, lambda done, text: None)
    evidence = validation_evidence(shop.dataset, shop.store.root / result.id)
    assert evidence.score == result.validation[shop.dataset.task.metrics[0]]
    tested = evidence_of(shop.dataset, "test", read_logits(shop.store.root / result.id, "test"))
    assert tested.score == result.scores[shop.dataset.task.metrics[0]]
    assert result.interval == tested.spread is not None
    assert len(shop.dataset.test.examples) != len(shop.dataset.validation.examples)
