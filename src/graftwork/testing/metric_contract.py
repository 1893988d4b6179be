"""The contract of a metric: its range, its statistics, and independence of the order of examples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import Metric, score
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds, metrics
from graftwork.testing.passage_contract import sample_questions
from graftwork.testing.require import require
from graftwork.testing.tiny_data import SAMPLES, Sample, sample_targets

TASKS: tuple[tuple[str, Sample], ...] = (
    ("classification", SAMPLES[1]), ("classification", ["no", "yes", "no"]), ("multilabel", SAMPLES[0]),
    ("regression", SAMPLES[2]), ("tagging", SAMPLES[3]), ("tagging", [("no", "yes"), ("yes", "yes")]),
    ("choice", SAMPLES[4]), ("ranking", SAMPLES[4]), ("span", ()), ("generation", SAMPLES[5]),
)  # fmt: skip


def sampled() -> Iterator[tuple[Task, Numbers]]:
    """Yield a resolved task and 24 encoded targets for every type of target among this package's kinds."""
    for kind, texts in TASKS:
        part, blank = kinds.get(kind), Task("tiny", Path(), kind=kind)
        targets = sample_targets(part, texts, blank) if texts else sample_questions()
        task = part.resolve(blank, targets)
        yield task, part.encode(targets, task)[np.resize(np.arange(len(targets)), 24)]


def check_metric(name: str) -> None:
    """Check what every metric must do, on samples of all kinds that it can score. Raises `AssertionError`."""
    metric, scored = metrics.get(name), 0
    for task, encoded in sampled():
        try:
            metric.statistics(encoded, encoded, task)
        except ConfigError as error:
            require(name in str(error), f"the refusal of {task.kind} does not name the metric: {error}")
            continue
        scored += 1
        _check_scores(metric, encoded, task)
    require(scored > 0, f"{name} scores no kind")


def _grid(numbers: Numbers) -> NDArray[Any]:
    """Return encoded targets as an array (N, …); all examples must have the same number of rows."""
    return numbers.flat.reshape(len(numbers), -1) if isinstance(numbers, Ragged) else numbers


def _like(numbers: Numbers, grid: NDArray[Any]) -> Numbers:
    """Return the inverse of `_grid`: the array in the layout of `numbers`."""
    return Ragged(grid.reshape(-1, *numbers.flat.shape[1:]), numbers.counts) if isinstance(numbers, Ragged) else grid


def _check_scores(metric: Metric, targets: Numbers, task: Task) -> None:
    random = np.random.default_rng(0)
    perfect = score(metric, targets, targets, task)
    require(math.isclose(perfect, 1, abs_tol=1e-6), f"perfect predictions score {perfect}")
    grid = _grid(targets)
    rolled, means = np.roll(grid, 1, axis=0), []
    differing = np.flatnonzero((rolled != grid).reshape(len(grid), -1).any(axis=1))
    for wrong in (1, 6, len(differing)):
        altered = grid.copy()
        altered[differing[:wrong]] = rolled[differing[:wrong]]
        predictions = _like(targets, altered)
        statistics = metric.statistics(targets, predictions, task)
        require(statistics.ndim == 2 and len(statistics) == len(targets), f"statistics are {statistics.shape}")
        means.append(statistics.mean(axis=0))
        reached, order = float(metric.value(means[-1])), random.permutation(len(targets))
        require(-1 <= reached < 1 - 1e-6, f"{wrong} of {len(targets)} wrong score {reached}")
        permuted = score(metric, targets[order], predictions[order], task)
        require(math.isclose(permuted, reached, abs_tol=1e-9), "the order of the examples changes the score")
    together = metric.value(np.stack(means))  # (3, K) -> (3,)
    apart = [float(metric.value(mean)) for mean in means]
    require(together.shape == (3,) and bool(np.allclose(together, apart)), "value is not a function of each row")
    same = _like(targets, np.repeat(grid[:1], len(grid), axis=0))
    require(math.isfinite(score(metric, targets, same, task)), "constant predictions have no score")
