"""Significance: rows of several boards compared on the same test examples, per task and over all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any

import numpy as np
from boards import Place, samples
from units import Result

from graftwork.compare.statistics import LEVEL, BoardRow, Bootstrap, bootstrap, holm
from graftwork.registry import metrics

DRAWS = 10_000


def over_tasks(place: Place, tasks: Sequence[str], runs: Mapping[str, Mapping[str, list[str]]]) -> Bootstrap:
    """Return a bootstrap of rows whose score is the mean over tasks. `runs`: row -> task -> runs.

    Examples and seeds are resampled for every task, the same for all rows; a row that lacks a task is left out.
    """
    whole = {name: listed for name, listed in runs.items() if all(listed.get(task) for task in tasks)}
    parts: dict[str, list[BoardRow]] = {name: [] for name in whole}
    if not whole:
        return Bootstrap({})
    for number, task in enumerate(tasks):
        metric, made = samples(place, place.task(task), {name: listed[task] for name, listed in whole.items()})
        drawn = bootstrap(made, metrics.get(metric), draws=DRAWS, seed=number)
        for name in whole:
            parts[name].append(drawn.rows[name])
    return Bootstrap({name: mean_of(rows) for name, rows in parts.items()})


def mean_of(rows: Sequence[BoardRow]) -> BoardRow:
    """Return the mean of one row's scores on several tasks, draw by draw."""
    return BoardRow(
        points=np.mean([row.points for row in rows], axis=0),
        by_seed=np.mean([row.by_seed for row in rows], axis=0),
        drawn=np.mean([row.drawn for row in rows], axis=0),
        examples=sum(row.examples for row in rows),
        least=sum(row.least for row in rows) / len(rows),
    )


def judged(boot: Bootstrap, families: Mapping[str, Sequence[tuple[str, str]]]) -> Result:
    """Return scores of all rows, and the pairs of each family with p corrected over that family (Holm)."""
    return {
        "scores": {name: asdict(boot.score(name)) for name in boot.rows},
        "differences": {family: _pairs(boot, pairs) for family, pairs in families.items()},
    }


def _pairs(boot: Bootstrap, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    found = [boot.difference(a, b) for a, b in pairs if a in boot.rows and b in boot.rows]
    known = iter(holm([pair.p for pair in found if pair.p is not None]))
    listed = []
    for pair in found:
        p = None if pair.p is None else next(known)
        verdict = "cannot tell" if p is None or p >= LEVEL else "better" if pair.delta > 0 else "worse"
        listed.append(asdict(replace(pair, p_holm=p, verdict=verdict)))
    return listed


def every_pair(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return all pairs in order, the first before the second."""
    return list(combinations(names, 2))
