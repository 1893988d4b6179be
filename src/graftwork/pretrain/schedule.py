"""The learning rate and the row length of every step."""

from __future__ import annotations

import math

from graftwork.methods.ulmfit import slanted_triangular
from graftwork.pretrain.objective import PretrainingRecipe
from graftwork.train.optimiser import warm_up_then_linear

SCHEDULES = ("linear", "cosine", "constant", "inverse_sqrt", "slanted")
RATIO = 32.0  # of the slanted triangular schedule: highest over lowest rate


def rate(recipe: PretrainingRecipe, step: int, steps: int) -> float:
    """Return the factor on the learning rate at `step` (0-based) of `steps`: warm-up to 1, then the schedule."""
    if recipe.schedule == "slanted":
        return slanted_triangular(step, steps, recipe.warm_up, RATIO)
    linear, rising = warm_up_then_linear(step, steps, recipe.warm_up), max(1, round(steps * recipe.warm_up))
    if step < rising or recipe.schedule == "linear":
        return linear
    if recipe.schedule == "inverse_sqrt":
        return math.sqrt(rising / (step + 1))
    return 1.0 if recipe.schedule == "constant" else 0.5 - 0.5 * math.cos(math.pi * linear)


def short_steps(recipe: PretrainingRecipe, steps: int) -> int:
    """Return the number of first steps with short rows."""
    return round(steps * recipe.short_share) if recipe.short_length else 0


def length_at(recipe: PretrainingRecipe, step: int, steps: int) -> int:
    """Return T, the row length of `step`."""
    return recipe.short_length if step < short_steps(recipe, steps) else recipe.length


def sum_over_steps(recipe: PretrainingRecipe, step: int, steps: int, short: float, long: float) -> float:
    """Sum over the steps before `step`: `short` for each step of short rows, `long` for each one of long rows."""
    first = min(step, short_steps(recipe, steps))
    return first * short + (step - first) * long


def positions(recipe: PretrainingRecipe, step: int, steps: int) -> int:
    """Return the tokens of the steps before `step`, special tokens included."""
    return int(sum_over_steps(recipe, step, steps, recipe.batch * recipe.short_length, recipe.batch * recipe.length))


def parts(recipe: PretrainingRecipe, rows: int) -> list[tuple[int, int]]:
    """Return the row range (start, stop) of every pass of a step; no more passes than for `recipe.batch` rows."""
    size = -(-rows * (recipe.rows_at_once or recipe.batch) // recipe.batch)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]
