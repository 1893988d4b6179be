"""The expected best validation score of n tries against the cost of n tries.

After Dodge et al. (2019, arXiv:1909.03004): the best of n draws, with replacement, from the tries that were made. V
tries with scores in ascending order give

    E[best of n] = sum over i of score_i x ((i / V)^n - ((i - 1) / V)^n)

The estimate is undefined beyond V tries, so a curve ends there. Scores are on validation, where choices are made.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from graftwork.core.run import RunResult


def expected_best(scores: Sequence[float]) -> list[float]:
    """Return the expected best of n of these V scores for n = 1 … V. The first is their mean."""
    ordered, tries = sorted(scores), len(scores)
    return [
        sum(score * ((i / tries) ** n - ((i - 1) / tries) ** n) for i, score in enumerate(ordered, start=1))
        for n in range(1, tries + 1)
    ]


def curve(runs: Sequence[RunResult], metric: str, cost: str, failed: float | None) -> list[dict[str, Any]]:
    """Return a point per number of tries: `n`, the expected best `score` (a fraction), and the `cost` of n tries.

    A failed run is a paid try that scores `failed`; if that is None, it is left out of the scores. The curve is empty
    for fewer than two scores, if all are equal, or if no price is known.
    """
    scores = [run.validation.get(metric) if run.status == "ok" else failed for run in runs]
    known = [score for score in scores if score is not None]
    prices = [tag.value for run in runs if (tag := run.costs.get(cost)) is not None and tag.value is not None]
    if len(known) < 2 or len(set(known)) == 1 or not prices:
        return []
    each = statistics.fmean(prices)
    return [{"n": n, "score": score, "cost": n * each} for n, score in enumerate(expected_best(known), start=1)]
