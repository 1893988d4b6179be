"""Scores over several tasks; a method's score on a task is the mean over its metrics and test sets, as in GLUE."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Seeds = Mapping[int, float]  # seed -> score, a fraction


@dataclass(frozen=True)
class PublishedEntry:
    """The results of a method on a task."""

    method: str
    status: str  # as on the board: "ok", "failed", …
    scores: Mapping[str, Seeds]  # "COLUMN metric" -> score of every seed; empty unless the status is "ok"
    validation: float  # mean of the headline metric, used for choices; NaN unless ok
    runs: Mapping[int, str]  # seed -> run id, of finished runs
    n_failed: int = 0  # failed runs among the scores, which count as the majority class


def spread(seeds: Seeds) -> dict[str, float]:
    """Return the mean and sd over seeds (sd 0 for one seed) and the number of seeds."""
    values = list(seeds.values())
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "sd": sd, "seeds": len(values)}


def best_on_validation(entries: Sequence[PublishedEntry]) -> PublishedEntry | None:
    """Return the entry with the best validation score, the first by name in a tie; None if no entry has scores."""
    scored = [entry for entry in entries if entry.scores]
    return min(scored, key=lambda entry: (-entry.validation, entry.method), default=None)


def over_tasks(entries: Sequence[PublishedEntry]) -> dict[str, Any]:
    """Return the mean and geometric mean of the scores on these tasks, over the seeds that all of them have.

    The geometric mean is None if a score is negative. Empty if an entry has no scores or there are no common seeds.
    """
    common = set.intersection(*(_seeds(entry) for entry in entries)) if entries else set()
    if not common:
        return {}
    of_seed = {seed: [_of_task(entry, seed) for entry in entries] for seed in sorted(common)}
    means = {seed: statistics.fmean(scores) for seed, scores in of_seed.items()}
    whole = [statistics.fmean(column) for column in zip(*of_seed.values(), strict=True)]
    return {"mean": spread(means), "geometric_mean": geometric_mean(whole)}


def geometric_mean(scores: Sequence[float]) -> float | None:
    """Return the geometric mean: 0 if a score is 0, None if one is negative."""
    if min(scores) < 0:
        return None
    return 0.0 if min(scores) == 0 else math.exp(statistics.fmean(map(math.log, scores)))


def _seeds(entry: PublishedEntry) -> set[int]:
    return set.intersection(*(set(seeds) for seeds in entry.scores.values())) if entry.scores else set()


def _of_task(entry: PublishedEntry, seed: int) -> float:
    """Return the mean over test sets and metrics; all test sets have the same metrics."""
    return statistics.fmean(seeds[seed] for seeds in entry.scores.values())


def of_published(scores: Mapping[str, float], tasks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return `over_tasks` of published scores (column -> points); `tasks`: task -> columns. Empty if one is missing."""
    if not all(column in scores for columns in tasks.values() for column in columns):
        return {}
    whole = [statistics.fmean(scores[column] / 100 for column in columns) for columns in tasks.values()]
    return {"mean": {"mean": statistics.fmean(whole), "sd": 0.0, "seeds": 0}, "geometric_mean": geometric_mean(whole)}
