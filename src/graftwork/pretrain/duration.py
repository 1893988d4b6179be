"""How long a pre-training lasts: in steps, tokens, FLOP, or what may be spent."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass

from graftwork.budget.purse import Budget, Clock, Purse, parse_budget
from graftwork.config import Prices
from graftwork.errors import ConfigError
from graftwork.pretrain.objective import PretrainingRecipe
from graftwork.units import show

FLOP = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?) ?([kMGTPE]?)FLOP")
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
KEPT = 0.04  # of a budget, for saving and for steps that turn out slower


@dataclass(frozen=True)
class Extent:
    """What is asked for: one of the three; none of them: one pass over the corpus."""

    steps: int | None = None
    tokens: int | None = None
    budget: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "tokens", "budget") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(
                f"{' and '.join(f'--{name}' for name in given)} exclude each other",
                expected="one of them",
                do="leave the others out",
            )
        for name in ("steps", "tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"--{name} must be at least 1", got=str(value))

    def as_json(self) -> dict[str, int | str]:
        """The part of a run's identity."""
        return {name: value for name, value in asdict(self).items() if value is not None} or {"passes": 1}


def steps_of(recipe: PretrainingRecipe, tokens: float) -> int:
    """How many steps have so many positions."""
    return max(1, math.ceil(tokens / mixed(recipe, recipe.batch * recipe.short_length, recipe.batch * recipe.length)))


def mixed(recipe: PretrainingRecipe, short: float, long: float) -> float:
    """The mean of a step, from that of a step of short rows and of long ones."""
    share = recipe.short_share if recipe.short_length else 0.0
    return share * short + (1 - share) * long


def flop_of(words: str) -> float | None:
    """`"1e15FLOP"` or `"200TFLOP"`; None for an amount of another sort. Raises `ConfigError` for none, or too many."""
    found = FLOP.fullmatch(words.strip())
    amount = float(found[1]) * PREFIXES[found[2]] if found else None
    if amount is not None and not 0 < amount < math.inf:
        raise ConfigError("not an amount of FLOP", got=repr(words), expected="a number above 0: 1e15FLOP or 200TFLOP")
    return amount


def paid_by(flop: float, each: float, before: float = 0.0) -> int:
    """How many steps, or tokens, of `each` FLOP are paid for by what `before` left. Raises `ConfigError` for none."""
    if flop < before + each:
        raise ConfigError(
            "the budget does not pay for the first step",
            got=show(flop, "FLOP"),
            expected=f"at least {show(before + each, 'FLOP')}",
            do="give a larger --budget, a smaller --size or fewer rows a step",
        )
    return int((flop - before) / each)


def purse_of(extent: Extent, prices: Prices, watch: Clock) -> Purse | None:
    """What pays for everything from now on; None unless time, energy or money is given. Raises `ConfigError`."""
    if extent.budget is None or flop_of(extent.budget) is not None:
        return None
    return Purse(parse_budget(extent.budget, prices), prices, watch)


class Allowance:
    """A budget of time, energy or money, of which earlier attempts may have spent some seconds."""

    def __init__(self, purse: Purse, before: float = 0.0):
        self.purse, self.budget = purse, purse.budget
        self.before = before  # seconds of earlier attempts
        purse.start_rating()  # what comes now is training, be it a trial

    def steps(self, seconds: float, kept: float) -> int:
        """How many steps of so many seconds are affordable from now on, where `kept` seconds are needed otherwise.

        Raises `ConfigError` where none is.
        """
        step, left = self.purse.price(seconds), self.budget.amount * (1 - KEPT) - self.purse.spent()
        count = int((left - self.purse.price(kept)) / max(step, 1e-12))
        if count < 1:
            raise ConfigError(
                "the budget is spent before the first step",
                got=str(self.budget),
                expected=f"more than {Budget(self.purse.spent() + step, self.budget.unit)}",
                do="give a larger --budget, a smaller --size or fewer rows a step",
            )
        return count

    def is_spent(self) -> bool:
        """Whether a further step would exceed it."""
        return self.purse.spent() + self.purse.price(self.before) > self.budget.amount
