"""Confidence intervals of scores: a bootstrap over the rows of a split, paired between runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.method import Logits
from graftwork.core.metric import Metric, OfSample, drawn_scores, score_of
from graftwork.core.task import Dataset
from graftwork.registry import kinds, metrics
from graftwork.run.store import read_logits

DRAWS = 1_000
INTERVAL = (2.5, 97.5)  # percentiles
ROUNDING = 1e-12  # rounding error of a score: smaller differences count as 0
BLOCK_BYTES = 24_000_000  # memory of the draws held at once


@dataclass(frozen=True)
class Evidence:
    """The headline score of one run on one split, and its bootstrap distribution over rows."""

    score: float  # a fraction
    draws: NDArray[np.float64]  # (DRAWS,), with the same rows in the same draw of every run

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        low, high = np.percentile(self.draws, INTERVAL)
        return float(low), float(high)

    @property
    def spread(self) -> tuple[float, float] | None:
        """The interval; None if all draws score alike (every prediction right, one row), which is not certainty."""
        low, high = self.interval
        return (low, high) if high - low > ROUNDING else None

    def gain_over(self, other: Evidence) -> tuple[float, float]:
        """Return the 95 % interval of this run's score minus that of `other`, paired: on the same rows."""
        gains = self.draws - other.draws
        low, high = np.percentile(np.where(np.abs(gains) > ROUNDING, gains, 0.0), INTERVAL)
        return float(low), float(high)


@dataclass(frozen=True)
class RowTally:
    """Per-example statistics (N, K) as distinct rows and indices, so that a draw of examples reduces to counts.

    An accuracy has two distinct rows, right and wrong, whatever N is.
    """

    rows: NDArray[np.float64]  # (U, K)
    places: NDArray[np.intp]  # (N,) index into `rows` of each example
    mean: NDArray[np.float64]  # (K,) over the examples

    @classmethod
    def of(cls, statistics: NDArray[Any]) -> RowTally:
        """Build from statistics (N, K), N above 0."""
        seen: dict[bytes, int] = {}
        places = [seen.setdefault(row.tobytes(), len(seen)) for row in statistics]
        rows = np.frombuffer(b"".join(seen), dtype=statistics.dtype).reshape(len(seen), -1)
        return cls(rows.astype(np.float64), np.array(places, dtype=np.intp), statistics.mean(axis=0))

    @property
    def statistics(self) -> NDArray[np.float64]:
        """(N, K) the statistics themselves."""
        return self.rows[self.places]

    def means(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the means (B, K) over B draws of examples (N,).

        Sums of integers are exact: statistics that are counts have the same means in any order.
        """
        places = self.places[draws]  # (B, N)
        places += len(self.rows) * np.arange(len(places))[:, None]  # each draw is counted apart
        counts = np.bincount(places.ravel(), minlength=len(places) * len(self.rows)).reshape(len(places), -1)  # (B, U)
        return np.asarray(counts @ self.rows / len(self.places))

    def differing(self, other: RowTally) -> NDArray[np.bool_]:
        """Return (N,) bool, True for the examples whose statistics differ from those in `other`."""
        pairs, which = np.unique(self.places * len(other.rows) + other.places, return_inverse=True)
        own, others = np.divmod(pairs, len(other.rows))
        return np.asarray((self.rows[own] != other.rows[others]).any(axis=1)[which])


def validation_evidence(dataset: Dataset, folder: Path) -> Evidence:
    """Return the evidence on validation, from the stored logits of the run in `folder`."""
    return evidence_of(dataset, "validation", read_logits(folder, "validation", kinds.get(dataset.task.kind)))


def evidence_of(dataset: Dataset, split: str, logits: Logits) -> Evidence:
    """Return the evidence of these logits of a split."""
    task, metric = dataset.task, metrics.get(dataset.task.metrics[0])
    predictions = kinds.get(task.kind).predictions(logits, task)
    return weigh(metric.statistics(dataset.splits[split].targets, predictions, task), metric)


def weigh(statistics: NDArray[Any], metric: Metric) -> Evidence:
    """Return the evidence of per-example `statistics` (N, K) of `metric`."""
    return weigh_together([(RowTally.of(statistics), metric)])[0]


def weigh_together(found: Sequence[tuple[RowTally, Metric]]) -> list[Evidence]:
    """Return the evidence of several metrics, or runs, over the same N examples, drawn once for all of them.

    Equal to the evidence of each alone: the draws depend only on N.
    """
    rows, random = len(found[0][0].places), np.random.default_rng(0)
    means: list[list[NDArray[np.float64]]] = [[] for _ in found]
    at_once = max(1, BLOCK_BYTES // (8 * rows))
    for start in range(0, DRAWS, at_once):
        drawn = random.integers(0, rows, (min(at_once, DRAWS - start), rows))
        for (tally, metric), of_tally in zip(found, means, strict=True):
            of_tally.append(
                drawn_scores(metric, tally.statistics, drawn) if isinstance(metric, OfSample) else tally.means(drawn)
            )
    return [
        Evidence(score_of(metric, tally.statistics), np.concatenate(of_tally))
        if isinstance(metric, OfSample)
        else Evidence(float(metric.value(tally.mean)), metric.value(np.concatenate(of_tally)))
        for (tally, metric), of_tally in zip(found, means, strict=True)
    ]
