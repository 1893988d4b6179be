"""Choice of a method: the cheapest one whose expected shortfall to the best is within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from graftwork.decision.posterior import Posterior
from graftwork.decision.traits import FLOOR, Arm
from graftwork.errors import ConfigError

WORTH = 0.005  # default tolerance, a fraction of the headline metric: half a point
AS_CHEAP = 1.25  # prices within this ratio count as equal: run times vary by as much
SETTLED = 0.1  # largest probability that another method is better by more than `worth` in a settled choice


@dataclass(frozen=True)
class Decision:
    """The chosen method and its alternatives."""

    chosen: Arm
    within: bool  # True if its expected shortfall is at most `worth`
    cheaper: Arm | None  # the best of the methods that cost at most half as much
    rivals: tuple[Arm, ...]  # methods likely enough to be better by more than `worth`, likeliest first


def parse_worth(points: float) -> float:
    """Convert points of the headline metric to a fraction. Raises `ConfigError` outside 0 … 100."""
    if not math.isfinite(points) or not 0 <= points <= 100:
        raise ConfigError(
            "--worth, the points by which a dearer method must be better, is out of range",
            got=f"{points:g}",
            expected="0 … 100",
            do="--worth 0.5 is the default; --worth 0 wants the best, whatever it costs",
        )
    return points / 100


def choose(posterior: Posterior, prices: Mapping[Arm, float], worth: float) -> Decision:
    """Choose, among the methods that have run, the cheapest whose expected shortfall to the best is small enough.

    That is at most `worth` (a fraction), or at most half of `worth` above the smallest shortfall. Of equally cheap
    methods (within `AS_CHEAP`), the one with the smallest shortfall is chosen. The majority class is chosen only if no
    method is expected to score above it. `prices` are in one unit; methods without a price count as most expensive.
    """
    open_to = [arm for arm in posterior.arms if arm in posterior.ran]
    assert open_to, "nothing has run"
    open_to = _above_floor(posterior, open_to)
    dearest = max(prices.values(), default=0.0)
    price = {arm: prices.get(arm, dearest) for arm in open_to}
    shortfalls = {arm: posterior.shortfall(arm)[0] for arm in open_to}
    allowed = max(worth, worth / 2 + min(shortfalls.values()))
    able = [arm for arm in open_to if shortfalls[arm] <= allowed]
    limit = AS_CHEAP * min(price[arm] for arm in able)
    chosen = min((arm for arm in able if price[arm] <= limit), key=lambda arm: (shortfalls[arm], price[arm]))
    half = [arm for arm in open_to if arm != chosen and price[arm] <= price[chosen] / 2]
    cheaper = min(half, key=lambda arm: (shortfalls[arm], price[arm]), default=None)
    return Decision(chosen, shortfalls[chosen] <= worth, cheaper, _rivals(posterior, chosen, worth))


def _above_floor(posterior: Posterior, arms: list[Arm]) -> list[Arm]:
    """Return the methods other than the majority class; only the latter if no method is expected to score above it."""
    floors = [arm for arm in arms if arm.sort == FLOOR]
    others = [arm for arm in arms if arm.sort != FLOOR]
    if not floors or not others:
        return arms
    gains = [posterior.gain(arm, floors[0])[0] for arm in others]
    return others if max(gains) > 0 else floors


def _rivals(posterior: Posterior, chosen: Arm, worth: float) -> tuple[Arm, ...]:
    """Return the methods that are better by more than `worth` with a probability above `SETTLED`, likeliest first."""
    own = posterior.draws[:, posterior.arms.index(chosen)]
    chances = {
        arm: float((posterior.draws[:, place] - own > max(worth, 1e-9)).mean())
        for place, arm in enumerate(posterior.arms)
        if arm != chosen
    }
    listed = sorted(chances, key=lambda arm: -chances[arm])
    return tuple(arm for arm in listed if chances[arm] > SETTLED)
