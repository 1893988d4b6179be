"""Resolution of a recipe: one rule for every method, which depends on the rows and the classes alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graftwork.core.run import Recipe
from graftwork.errors import ConfigError

EPOCHS, EPOCHS_OF_MANY = 3, 5  # with at most `MANY` outputs, and with more (docs/log.md)
STEPS_AT_LEAST, EPOCHS_AT_MOST = 300, 10  # small data is trained on for more epochs
MANY, FEW_ROWS = 20, 1_000  # with more outputs than this and fewer rows of each, a head fitted on pretrained features
# is better than the trained one:
KEPT_OF_MANY, HEAD_OF_MANY = 0.5, 0.1  # weights half-way from the head start; head rate ten times lower
STEPS_OF_A_PART = 20  # minimum, however small the part is
WEIGHT_DECAY = 0.01
CLIP = 1.0
FITTED, UNFITTED = "linear layer fitted on frozen features", "none: the head starts from random numbers"
OF_TEXTS: Mapping[str, Any] = {  # entries that differ for a network that learns to write
    "dropout": "that of the network's config.json in all blocks that a step runs",
    "head_start": "none: the language-model head is the pretrained one",
    "kept": "the epoch of the least loss on validation, the last of equals",
}
EQUAL_RATES, RATES_BY_DEPTH = "equal in all blocks", "of all parts by depth"  # values of the entry "rates"
LINEAR: Mapping[str, Any] = {"schedule": "linear", "warm_up": 0.1}  # warm-up is a share of the steps


def require_sense(recipe: Recipe) -> None:
    """Raise `ConfigError` for a number that is invalid for any data."""
    for name in ("epochs", "batch_size", "learning_rate"):
        value = getattr(recipe, name)
        if isinstance(value, bool | str):  # True would count as 1
            raise ConfigError(f"{name} must be a number", got=repr(value))
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0", got=repr(value))
        if value is not None and name != "learning_rate" and not isinstance(value, int):
            raise ConfigError(f"{name} must be a whole number", got=repr(value))
    if not 0 < recipe.part <= 1:
        raise ConfigError("part must be above 0 and at most 1", got=repr(recipe.part))


def resolve(
    recipe: Recipe,
    rows: int,
    outputs: int,
    schedule: Mapping[str, Any] = LINEAR,
    answers: int | None = None,
    head_start: bool = True,
    pretrained: bool = True,
) -> dict[str, Any]:
    """Fill in every field for the receipt, `schedule` included. `answers` counts the targets, by default one per row.

    The settings for many classes are used only where the head is fitted first, on pretrained features.

    Raises `ConfigError` for an invalid number.
    """
    require_sense(recipe)
    steps_per_epoch = math.ceil(rows / recipe.batch_size)
    enough = math.ceil(STEPS_AT_LEAST / steps_per_epoch)
    wanted = min(max(EPOCHS if outputs <= MANY else EPOCHS_OF_MANY, enough), EPOCHS_AT_MOST)
    epochs = recipe.epochs or wanted
    many = head_start and pretrained and outputs > MANY and (answers or rows) < FEW_ROWS * outputs
    resolved = {
        "epochs": epochs,
        "batch_size": recipe.batch_size,
        "learning_rate": recipe.learning_rate,  # None: the method's own
        "steps": epochs * steps_per_epoch,
        "weight_decay": WEIGHT_DECAY,
        "clip": CLIP,
        **schedule,
        "dropout": "none: frozen and trained blocks run in eval mode",
        "head_start": FITTED if head_start else UNFITTED,
        "kept": "the epoch that is best on validation, the last of equals",
        "kept_share": KEPT_OF_MANY if many else 1.0,  # of the way from the head start to the trained weights (WiSE-FT)
        "head_rate": HEAD_OF_MANY if many else 1.0,  # share of the learning rate
    }
    return resolved | _cut(recipe.part, epochs, steps_per_epoch)


def _cut(part: float, epochs: int, steps_per_epoch: int) -> dict[str, Any]:
    """Return the changes for a part of the steps: as few epochs as hold them, each cut to equally many batches.

    Empty when that would not be fewer steps: it is then the whole run, under the same id.
    """
    steps = epochs * steps_per_epoch
    wanted = min(steps, max(math.ceil(part * steps), STEPS_OF_A_PART))
    fewer = math.ceil(wanted / steps_per_epoch)
    batches = math.ceil(wanted / fewer)
    if fewer * batches == steps:
        return {}
    return {"part": part, "epochs": fewer, "batches_per_epoch": batches, "steps": fewer * batches}
