"""The JSON form of a decision, as stored in `leaderboard.json` and `ladder.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graftwork.decision.settling import settling
from graftwork.decision.standing import Standing
from graftwork.decision.traits import Arm


def content_of(standing: Standing, worth: float) -> dict[str, Any]:
    """Return a decision as JSON: scores, gains and shortfalls are fractions with 90 % intervals, prices are seconds
    of training.

    `chosen`: the method to use; `within`: whether its expected shortfall is at most `worth`; `cheaper`: the best method
    of at most half its price; `rivals`: methods that may be better by more than `worth`, and what would settle the
    choice; `methods`: all methods with their expected shortfalls.
    """
    choice, there, landmarks, prices = standing.choice(worth), standing.posterior, standing.landmarks, standing.prices
    methods = []
    for arm in standing.arms:
        mean, low, high = there.shortfall(arm)
        methods.append({
            "method": arm.label, "runs": standing.runs(arm), "validation": landmarks.get(arm),
            "seconds": prices.get(arm), "shortfall": mean, "low": low, "high": high,
        })  # fmt: skip
    rivals = [
        _beside(standing, rival, choice.chosen) | asdict(settling(standing, choice.chosen, rival, worth))
        for rival in choice.rivals
    ]
    return {
        "worth": worth,
        "chosen": choice.chosen.label,
        "within": choice.within,
        "cheaper": None if choice.cheaper is None else _beside(standing, choice.cheaper, choice.chosen),
        "rivals": rivals,
        "methods": methods,
        "traits": asdict(standing.traits),
        "validation_rows": standing.rows,
        "boards": len(standing.prior.experience.tasks),
    }


def _beside(standing: Standing, arm: Arm, chosen: Arm) -> dict[str, Any]:
    """Return the gain of the chosen method over another: by the posterior, the prior alone, and these rows alone."""
    return {
        "method": arm.label,
        "ran": standing.runs(arm) > 0,
        "gain": standing.posterior.gain(chosen, arm),
        "prior": standing.expected_before(chosen, arm),
        "rows_alone": standing.seen(chosen, arm) if standing.runs(arm) else None,
    }
