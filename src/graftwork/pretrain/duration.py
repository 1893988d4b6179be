"""The length of a pre-training: in steps, tokens, FLOP, or a budget of time, energy or money."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass

from graftwork.budget.budget_account import Budget, BudgetAccount, Clock, parse_budget
from graftwork.config import Prices
from graftwork.errors import ConfigError
from graftwork.pretrain.objective import PretrainingRecipe
from graftwork.units import show

FLOP = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?) ?([kMGTPE]?)FLOP")
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
KEPT = 0.04  # share of a budget reserved for saving and for slower steps than measured


@dataclass(frozen=True)
class Extent:
    """The requested length: one of the three fields; if none is given, one pass over the corpus."""

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
        """Return the given field as JSON for a run's identity; `{"passes": 1}` if none is given."""
        return {name: value for name, value in asdict(self).items() if value is not None} or {"passes": 1}


def steps_of(recipe: PretrainingRecipe, tokens: float) -> int:
    """Return the number of steps that together have at least `tokens` positions."""
    return max(
        1, math.ceil(tokens / mean_step(recipe, recipe.batch * recipe.short_length, recipe.batch * recipe.length))
    )


def mean_step(recipe: PretrainingRecipe, short: float, long: float) -> float:
    """Return the mean over all steps of a quantity that is `short` in a step of short rows and `long` in the others."""
    share = recipe.short_share if recipe.short_length else 0.0
    return share * short + (1 - share) * long


def flop_of(words: str) -> float | None:
    """Parse `"1e15FLOP"` or `"200TFLOP"`; None if it is neither. Raises `ConfigError` for 0 or infinity."""
    found = FLOP.fullmatch(words.strip())
    amount = float(found[1]) * PREFIXES[found[2]] if found else None
    if amount is not None and not 0 < amount < math.inf:
        raise ConfigError("not an amount of FLOP", got=repr(words), expected="a number above 0: 1e15FLOP or 200TFLOP")
    return amount


def paid_by(flop: float, each: float, before: float = 0.0) -> int:
    """Return how many steps, or tokens, of `each` FLOP `flop` - `before` pays for. Raises `ConfigError` for none."""
    if flop < before + each:
        raise ConfigError(
            "the budget does not pay for the first step",
            got=show(flop, "FLOP"),
            expected=f"at least {show(before + each, 'FLOP')}",
            do="give a larger --budget, a smaller --size or fewer rows a step",
        )
    return int((flop - before) / each)


def account_of(extent: Extent, prices: Prices, watch: Clock) -> BudgetAccount | None:
    """Return the account of a budget of time, energy or money; None for other extents. Raises `ConfigError`."""
    if extent.budget is None or flop_of(extent.budget) is not None:
        return None
    return BudgetAccount(parse_budget(extent.budget, prices), prices, watch)


class Allowance:
    """A budget of time, energy or money, part of which earlier attempts may have spent."""

    def __init__(self, account: BudgetAccount, before: float = 0.0):
        self.account, self.budget = account, account.budget
        self.before = before  # seconds spent by earlier attempts
        account.start_rating()  # training begins here, the pilot included

    def steps(self, seconds: float, kept: float) -> int:
        """Return how many steps of `seconds` each can be paid for from now on, with `kept` seconds reserved.

        Raises `ConfigError` if none can.
        """
        step, left = self.account.price(seconds), self.budget.amount * (1 - KEPT) - self.account.spent()
        count = int((left - self.account.price(kept)) / max(step, 1e-12))
        if count < 1:
            raise ConfigError(
                "the budget is spent before the first step",
                got=str(self.budget),
                expected=f"more than {Budget(self.account.spent() + step, self.budget.unit)}",
                do="give a larger --budget, a smaller --size or fewer rows a step",
            )
        return count

    def is_spent(self) -> bool:
        """Return whether the budget is exceeded."""
        return self.account.spent() + self.account.price(self.before) > self.budget.amount
