"""Which method to use: the cheapest one whose expected shortfall to the best is no more than a point is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from graftwork.decision.posterior import Posterior
from graftwork.decision.traits import FLOOR, Arm
from graftwork.errors import ConfigError

WORTH = 0.005  # of the headline metric, a fraction: half a point
SETTLED = 0.1  # the chance, at most, that another method is better by more than it is worth


@dataclass(frozen=True)
class Decision:
    """What to use, and what else there is to say of it."""

    chosen: Arm
    within: bool  # whether its expected shortfall is no more than that
    cheaper: Arm | None  # the best of the methods that cost at most half of it
    rivals: tuple[Arm, ...]  # that may well be better by more than it is worth, likeliest first


def parse_worth(points: float) -> float:
    """Points of the headline metric as a fraction. Raises `ConfigError` for what is no such number."""
    if not math.isfinite(points) or not 0 <= points <= 100:
        raise ConfigError(
            "--worth says by how many points a dearer method must be better",
            got=f"{points:g}",
            expected="0 … 100",
            do="--worth 0.5 is the default; --worth 0 wants the best, whatever it costs",
        )
    return points / 100


def choose(posterior: Posterior, prices: Mapping[Arm, float], worth: float) -> Decision:
    """The cheapest of the methods that have run whose expected shortfall is at most `worth`, or at most half of `worth`
    above the least there is.

    The majority class only where nothing is expected to score above it. `prices` in any one unit; what has none there
    costs as much as the dearest.
    """
    open_to = [arm for arm in posterior.arms if arm in posterior.ran]
    assert open_to, "nothing has run"
    open_to = _above_floor(posterior, open_to)
    dearest = max(prices.values(), default=0.0)
    price = {arm: prices.get(arm, dearest) for arm in open_to}
    shortfalls = {arm: posterior.shortfall(arm)[0] for arm in open_to}
    within = min(shortfalls.values()) <= worth
    allowed = max(worth, worth / 2 + min(shortfalls.values()))
    chosen = min((arm for arm in open_to if shortfalls[arm] <= allowed), key=lambda arm: (price[arm], shortfalls[arm]))
    half = [arm for arm in open_to if arm != chosen and price[arm] <= price[chosen] / 2]
    cheaper = min(half, key=lambda arm: (shortfalls[arm], price[arm]), default=None)
    return Decision(chosen, within, cheaper, _rivals(posterior, chosen, worth))


def _above_floor(posterior: Posterior, arms: list[Arm]) -> list[Arm]:
    """The methods but the majority class; that class alone where none of them is expected to score above it."""
    floors = [arm for arm in arms if arm.sort == FLOOR]
    others = [arm for arm in arms if arm.sort != FLOOR]
    if not floors or not others:
        return arms
    gains = [posterior.gain(arm, floors[0])[0] for arm in others]
    return others if max(gains) > 0 else floors


def _rivals(posterior: Posterior, chosen: Arm, worth: float) -> tuple[Arm, ...]:
    """Methods that are better by more than `worth` with a chance of more than `SETTLED`."""
    own = posterior.draws[:, posterior.arms.index(chosen)]
    chances = {
        arm: float((posterior.draws[:, place] - own > max(worth, 1e-9)).mean())
        for place, arm in enumerate(posterior.arms)
        if arm != chosen
    }
    listed = sorted(chances, key=lambda arm: -chances[arm])
    return tuple(arm for arm in listed if chances[arm] > SETTLED)
