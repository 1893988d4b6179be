"""How far a score can be trusted: a bootstrap over the rows of its split, paired between runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import Logits
from graftwork.core.metric import Metric
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.store import read_logits

DRAWS = 1_000
INTERVAL = (2.5, 97.5)  # percentiles
ROUNDING = 1e-12  # of a score: what a sum of numbers that are no counts makes of nothing
BLOCK_BYTES = 24_000_000  # of the draws that are held at once


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
        return (low, high) if high - low > ROUNDING else None

    def gain_over(self, other: Evidence) -> tuple[float, float]:
        """The 95 % interval of what this run scores above `other`, paired: both are scored on the same rows."""
        gains = self.draws - other.draws
        low, high = np.percentile(np.where(np.abs(gains) > ROUNDING, gains, 0.0), INTERVAL)
        return float(low), float(high)


@dataclass(frozen=True)
class RowTally:
    """Per-example statistics (N, K), every distinct row of them once, so that a draw of examples is a few counts.

    Of right and wrong there are two, however many examples.
    """

    rows: NDArray[np.float64]  # (U, K)
    places: NDArray[np.intp]  # (N,) which of `rows` each example has
    mean: NDArray[np.float64]  # (K,) over the examples

    @classmethod
    def of(cls, statistics: NDArray[Any]) -> RowTally:
        """Of (N, K), N above 0."""
        seen: dict[bytes, int] = {}
        places = [seen.setdefault(row.tobytes(), len(seen)) for row in statistics]
        rows = np.frombuffer(b"".join(seen), dtype=statistics.dtype).reshape(len(seen), -1)
        return cls(rows.astype(np.float64), np.array(places, dtype=np.intp), statistics.mean(axis=0))

    def means(self, draws: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """(B, K) over each of these draws of examples (N,).

        Sums of whole numbers are exact: statistics that are counts have the same means in any order.
        """
        counts = np.stack([np.bincount(self.places[drawn], minlength=len(self.rows)) for drawn in draws])  # (B, U)
        return np.asarray(counts @ self.rows / len(self.places))

    def differing(self, other: RowTally) -> NDArray[np.bool_]:
        """(N,) which of the same examples have other statistics there."""
        pairs, which = np.unique(self.places * len(other.rows) + other.places, return_inverse=True)
        own, others = np.divmod(pairs, len(other.rows))
        return np.asarray((self.rows[own] != other.rows[others]).any(axis=1)[which])


def validation_evidence(dataset: Dataset, folder: Path) -> Evidence:
    """From the stored logits of the run in `folder`."""
    return evidence_of(dataset, "validation", read_logits(folder, "validation"))


def evidence_of(dataset: Dataset, split: str, logits: Logits) -> Evidence:
    """That of these logits of a split."""
    task, metric = dataset.task, metrics.get(dataset.task.metrics[0])
    predictions = kinds.get(task.kind).predictions(logits, task)
    return weigh(metric.statistics(dataset.splits[split].targets, predictions, task), metric)


def weigh(statistics: NDArray[Any], metric: Metric) -> Evidence:
    """The evidence in per-example `statistics` (N, K) of `metric`."""
    return weigh_together([(RowTally.of(statistics), metric)])[0]


def weigh_together(found: Sequence[tuple[RowTally, Metric]]) -> list[Evidence]:
    """That of several metrics, or runs, over the same N examples, which are drawn once for all of them.

    Equal to the evidence of each by itself: the draws depend on N alone.
    """
    rows, random = len(found[0][0].places), np.random.default_rng(0)
    means: list[list[NDArray[np.float64]]] = [[] for _ in found]
    at_once = max(1, BLOCK_BYTES // (8 * rows))
    for start in range(0, DRAWS, at_once):
        drawn = [random.integers(0, rows, rows) for _ in range(min(at_once, DRAWS - start))]
        for (tally, _), of_tally in zip(found, means, strict=True):
            of_tally.append(tally.means(drawn))
    return [
        Evidence(float(metric.value(tally.mean)), metric.value(np.concatenate(of_tally)))
        for (tally, metric), of_tally in zip(found, means, strict=True)
    ]
