"""How far a score can be trusted: a bootstrap over the rows of its split, paired between runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import Logits
from graftwork.core.metric import Metric
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.store import read_logits

DRAWS = 1_000
INTERVAL = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class Evidence:
    """The headline score of one run on one split, and what it would be on other draws of its rows."""

    score: float  # a fraction
    draws: NDArray[np.float64]  # (DRAWS,), the same rows in the same draw of every run

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        low, high = np.percentile(self.draws, INTERVAL)
        return float(low), float(high)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The interval; None where all draws score alike (every answer right, one row): that is no certainty."""
        low, high = self.interval
        return (low, high) if low < high else None

    def gain_over(self, other: Evidence) -> tuple[float, float]:
        """The 95 % interval of what this run scores above `other`, paired: both are scored on the same rows."""
        low, high = np.percentile(self.draws - other.draws, INTERVAL)
        return float(low), float(high)

    def beats(self, other: Evidence) -> bool:
        """Whether the gain is more than the noise of the rows."""
        return self.gain_over(other)[0] > 0


def validation_evidence(dataset: Dataset, folder: Path) -> Evidence:
    """From the stored logits of the run in `folder`."""
    return evidence_of(dataset, "validation", read_logits(folder, "validation"))


def evidence_of(dataset: Dataset, split: str, logits: Logits) -> Evidence:
    """That of these logits of a split."""
    task, metric = dataset.task, metrics.get(dataset.task.metrics[0])
    predictions = kinds.get(task.kind).predictions(logits, task)
    return weigh(metric.statistics(dataset.splits[split].targets, predictions, task), metric)


def weigh(statistics: NDArray[np.float64], metric: Metric) -> Evidence:
    """The evidence in per-example `statistics` (N, K) of `metric`."""
    rows, random = len(statistics), np.random.default_rng(0)
    means = [statistics[random.integers(0, rows, rows)].mean(axis=0) for _ in range(DRAWS)]
    return Evidence(float(metric.value(statistics.mean(axis=0))), metric.value(np.stack(means)))
