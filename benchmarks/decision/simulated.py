"""Calibration of stated shortfalls: boards drawn from the prior, with known truth, decided as real ones are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from replays import Replay

from graftwork.decision.choice import WORTH
from graftwork.decision.prior import LEVEL, Prior, Sizes, landmark_of, spread_of
from graftwork.decision.standing import Standing
from graftwork.decision.traits import TUNED
from graftwork.run.score_interval import Evidence

DRAWS = 400
BANDS = (0.0, 0.0025, 0.005, 0.01, 0.02, 1.0)  # of the stated expected shortfall


def coverage(tasks: Sequence[Replay], priors: Mapping[str, Prior], sizes: Sizes, boards: int) -> dict[str, Any]:
    """Return the coverage of the chosen method's 90 % shortfall interval, and mean shortfalls.

    The mean stated and true shortfall are given by bands of the stated one. Each board: a task of the benchmark, new
    true scores, every method once.
    """
    random = np.random.default_rng(0)
    stated, true, inside = [], [], []
    for _ in range(boards):
        task = tasks[random.integers(len(tasks))]
        prior, arms = priors[task.name], list(task.arms)
        landmarks = {arm: seen.test for arm, seen in task.arms.items() if arm.sort != TUNED}
        belief = prior.belief(task.record.traits, arms, landmarks)
        spread = spread_of(landmark_of(landmarks), task.record.traits.least)
        truth = random.multivariate_normal(belief.mean, belief.covariance - (LEVEL * spread) ** 2)  # the level is kept
        standing = Standing(arms, task.record.traits, task.rows, prior)
        run_scores = _run_scores(truth, spread, task.rows, [arm.sort == TUNED for arm in arms], sizes, random)
        for (arm, seen), (score, draws) in zip(task.arms.items(), run_scores, strict=True):
            standing.add(arm, Evidence(score, draws), max(0.05, seen.seconds), False)
        chosen = standing.choice(WORTH).chosen
        mean, low, high = standing.posterior.shortfall(chosen)
        stated.append(mean)
        true.append(float(truth.max() - truth[arms.index(chosen)]))
        inside.append(low - 1e-12 <= true[-1] <= high + 1e-12)
    bands = []
    for low, high in pairwise(BANDS):
        within = [place for place, value in enumerate(stated) if low <= value < high]
        if within:
            bands.append({
                "from": low, "to": high, "boards": len(within),
                "stated": float(np.mean([stated[place] for place in within])),
                "true": float(np.mean([true[place] for place in within])),
            })  # fmt: skip
    return {"boards": boards, "covered": float(np.mean(inside)), "bands": bands}


def _run_scores(
    truth: NDArray[np.float64], spread: float, rows: int, tuned: list[bool], sizes: Sizes, random: np.random.Generator
) -> list[tuple[float, NDArray[np.float64]]]:
    """Return for every method a validation score and its bootstrap draws."""
    deviation = spread / np.sqrt(rows)
    shared, own = np.sqrt(sizes.paired), np.sqrt(1 - sizes.paired)
    seeds = spread * np.where(tuned, sizes.seed_tuned, sizes.seed_other)
    shown = truth + deviation * (shared * random.normal() + own * random.normal(size=len(truth)))
    shown = shown + seeds * random.normal(size=len(truth))
    together = random.normal(size=DRAWS)
    return [
        (float(score), score + deviation * (shared * together + own * random.normal(size=DRAWS))) for score in shown
    ]
