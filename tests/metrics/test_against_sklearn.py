"""Every metric equals scikit-learn's or scipy's, on whole samples and on resampled ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import metrics

LABELS = tuple("abcde")
TASK = Task("t", Path("t"), labels=LABELS, settings={"positive": "b"})
Reference = Callable[[Any, Any], float]

CLASSES: dict[str, Reference] = {
    "accuracy": sklearn.accuracy_score,
    "macro_f1": lambda y, p: sklearn.f1_score(y, p, average="macro", zero_division=0),
    "f1": lambda y, p: sklearn.f1_score(y == 1, p == 1, zero_division=0),
    "matthews": sklearn.matthews_corrcoef,
}
NUMBERS: dict[str, Reference] = {
    "pearson": lambda y, p: stats.pearsonr(y, p).statistic,
    "spearman": lambda y, p: stats.spearmanr(y, p).statistic,
}


def equal(name: str, reference: Reference, targets: Any, predictions: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sklearn warns of samples with one class
        expected = reference(targets, predictions)
    assert score(metrics.get(name), targets, predictions, TASK) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    random = np.random.default_rng(0)
    for case in range(150):
        rows, classes = random.integers(2, 80), random.integers(2, 6)
        targets = random.integers(0, classes, rows)
        guessed = random.integers(0, classes, rows)
        equal(name, CLASSES[name], targets, np.where(random.random(rows) < case / 150, targets, guessed))


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    ("targets", "predictions"),
    [
        ([0, 1, 0, 1], [0, 0, 0, 0]),
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 0], [1, 1, 1]),
        ([1, 1, 1], [1, 1, 1]),
        ([0, 1, 2, 2], [0, 1, 1, 1]),
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ([0, 1, 1], [0, 1, 4]),
    ],
)
def test_classes_never_predicted_or_never_there(name: str, targets: list[int], predictions: list[int]) -> None:
    equal(name, CLASSES[name], np.array(targets), np.array(predictions))


@pytest.mark.parametrize("name", ["accuracy", "macro_f1"])
def test_several_labels(name: str) -> None:
    random = np.random.default_rng(1)
    for case in range(100):
        targets = (random.random((random.integers(1, 40), 5)) < case / 200).astype(np.float32)
        flips = random.random(targets.shape) < 0.1
        equal(name, CLASSES[name], targets, np.abs(targets - flips).astype(np.float32))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_numbers(name: str, offset: float) -> None:
    random = np.random.default_rng(2)
    for case in range(100):
        targets = random.normal(size=random.integers(3, 200)).round(case % 3)
        if np.ptp(targets):
            predictions = offset + targets * (case / 100) + random.normal(size=len(targets))
            equal(name, NUMBERS[name], targets, predictions)


@pytest.mark.parametrize("name", NUMBERS)
def test_perfect_reversed_and_constant_numbers(name: str) -> None:
    targets = np.array([0.1, 0.2, 0.4, 0.9])
    assert score(metrics.get(name), targets, 3 * targets + 1, TASK) == pytest.approx(1, abs=1e-12)
    assert score(metrics.get(name), targets, -targets, TASK) == pytest.approx(-1, abs=1e-12)
    assert score(metrics.get(name), targets, np.full(4, 0.1), TASK) == 0
    assert score(metrics.get(name), np.full(4, 0.1), targets, TASK) == 0


@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "f1", "matthews", "pearson"])
def test_one_matrix_product_scores_every_resample(name: str) -> None:
    random = np.random.default_rng(3)
    numbers = name == "pearson"
    targets = random.normal(size=12) if numbers else random.integers(0, 3, 12)
    predictions = (targets + random.normal(size=12)).round(1) if numbers else random.integers(0, 3, 12)
    rows = random.integers(0, 12, (200, 12))
    rows[0] = 5  # twelve times the same example
    counts = np.stack([np.bincount(row, minlength=12) for row in rows])  # (200, 12)
    metric = metrics.get(name)
    values = metric.value(counts @ metric.statistics(targets, predictions, TASK) / 12)
    assert values.shape == (200,)
    for row, value in zip(rows[1:], values[1:], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = (CLASSES | NUMBERS)[name](targets[row], predictions[row])
        assert value == pytest.approx(expected, abs=1e-9 if numbers else 1e-12)
    if name in ("matthews", "pearson"):
        assert values[0] == 0


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("accuracy", np.float32, (3,)),
        ("macro_f1", np.float32, (3,)),
        ("f1", np.float32, (3,)),
        ("f1", np.float32, (3, 5)),
        ("matthews", np.float32, (3, 5)),
        ("pearson", np.int64, (3,)),
        ("spearman", np.float32, (3, 5)),
    ],
)
def test_a_metric_of_another_kind_is_refused(name: str, dtype: type, shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, dtype=dtype)
    with pytest.raises(ConfigError, match=f"the metric '{name}' scores"):
        metrics.get(name).statistics(values, values, TASK)


@pytest.mark.parametrize("name", ["macro_f1", "matthews"])
def test_statistics_of_many_classes_take_a_byte_a_number(name: str) -> None:
    """And score to the last bit as the same numbers in eight bytes."""
    random, metric = np.random.default_rng(5), metrics.get(name)
    task = TASK.resolved(labels=tuple(map(str, range(151))))
    targets = random.integers(0, 151, 3000)
    predictions = np.where(random.random(3000) < 0.8, targets, random.integers(0, 151, 3000))
    found = metric.statistics(targets, predictions, task)
    assert found.nbytes == found.size
    assert float(metric.value(found.mean(axis=0))) == float(metric.value(found.astype(np.float64).mean(axis=0)))


def test_f1_without_a_positive_class_is_refused() -> None:
    values = np.zeros(3, dtype=np.int64)
    with pytest.raises(ConfigError, match="needs a positive class"):
        metrics.get("f1").statistics(values, values, TASK.resolved(positive=None))
