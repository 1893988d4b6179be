"""How long to train: one rule for every method, from the rows and the classes alone."""

from __future__ import annotations

import math
from typing import Any

from graftwork.core.run import Recipe
from graftwork.errors import ConfigError

STEPS, STEPS_PER_BIT = 130, 270  # updates wanted: a head start needs few, telling many classes apart needs more
EPOCHS_AT_LEAST, EPOCHS_AT_MOST = 3, 8
WARM_UP = 0.1  # share of the steps
WEIGHT_DECAY = 0.01
CLIP = 1.0


def resolve(recipe: Recipe, rows: int, outputs: int) -> dict[str, Any]:
    """Every field filled in, for the receipt. Raises `ConfigError` for a number that makes no sense."""
    for name in ("epochs", "batch_size", "learning_rate"):
        value = getattr(recipe, name)
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0", got=repr(value))
    steps_per_epoch = math.ceil(rows / recipe.batch_size)
    wanted = round((STEPS + STEPS_PER_BIT * math.log2(outputs)) / steps_per_epoch)
    epochs = recipe.epochs or min(max(wanted, EPOCHS_AT_LEAST), EPOCHS_AT_MOST)
    return {
        "epochs": epochs,
        "batch_size": recipe.batch_size,
        "learning_rate": recipe.learning_rate,  # None: the method's own
        "steps": epochs * steps_per_epoch,
        "warm_up": WARM_UP,
        "weight_decay": WEIGHT_DECAY,
        "clip": CLIP,
        "schedule": "linear",
        "head_start": "linear layer fitted on frozen features",
        "kept": "the epoch that is best on validation, the head start included",
    }
