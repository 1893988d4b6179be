"""Scores over several tasks: a method's score in a task is the mean of its metrics and test sets, as GLUE counts it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Seeds = Mapping[int, float]  # seed -> score, a fraction


@dataclass(frozen=True)
class PublishedEntry:
    """A method in a task."""

    method: str
    status: str  # as on the board: "ok", "dropped", …
    scores: Mapping[str, Seeds]  # "COLUMN metric" -> score of every seed; nothing unless the status is "ok"
    validation: float  # mean of the headline, what choices are made by; NaN unless ok
    runs: Mapping[int, str]  # seed -> id of the run, of those that finished
    n_failed: int = 0  # runs among the scores that failed: the majority class stands for them


def spread(seeds: Seeds) -> dict[str, float]:
    """Mean, sd over seeds (0 for one) and their number."""
    values = list(seeds.values())
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "sd": sd, "seeds": len(values)}


def best_on_validation(entries: Sequence[PublishedEntry]) -> PublishedEntry | None:
    """The method that validation shows; of equals the first by name."""
    scored = [entry for entry in entries if entry.scores]
    return min(scored, key=lambda entry: (-entry.validation, entry.method), default=None)


def over_tasks(entries: Sequence[PublishedEntry]) -> dict[str, Any]:
    """Mean and geometric mean of the scores in these tasks, by the seeds that all of them have.

    The geometric mean is None where a score is below zero. Nothing for an entry without scores or common seeds.
    """
    common = set.intersection(*(_seeds(entry) for entry in entries)) if entries else set()
    if not common:
        return {}
    of_seed = {seed: [_of_task(entry, seed) for entry in entries] for seed in sorted(common)}
    means = {seed: statistics.fmean(scores) for seed, scores in of_seed.items()}
    whole = [statistics.fmean(column) for column in zip(*of_seed.values(), strict=True)]
    return {"mean": spread(means), "geometric_mean": geometric_mean(whole)}


def geometric_mean(scores: Sequence[float]) -> float | None:
    """0 where one of them is; None where one is below."""
    if min(scores) < 0:
        return None
    return 0.0 if min(scores) == 0 else math.exp(statistics.fmean(map(math.log, scores)))


def _seeds(entry: PublishedEntry) -> set[int]:
    return set.intersection(*(set(seeds) for seeds in entry.scores.values())) if entry.scores else set()


def _of_task(entry: PublishedEntry, seed: int) -> float:
    """Mean over test sets of the mean over metrics: they have the same metrics, so it is the mean of all."""
    return statistics.fmean(seeds[seed] for seeds in entry.scores.values())


def of_published(scores: Mapping[str, float], tasks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The same of published figures, in points; `tasks` has the columns of each. Nothing if one is missing."""
    if not all(column in scores for columns in tasks.values() for column in columns):
        return {}
    whole = [statistics.fmean(scores[column] / 100 for column in columns) for columns in tasks.values()]
    return {"mean": {"mean": statistics.fmean(whole), "sd": 0.0, "seeds": 0}, "geometric_mean": geometric_mean(whole)}
