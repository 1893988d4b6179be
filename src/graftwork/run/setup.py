"""How runs are computed and where they are kept: what every function that makes runs of tasks takes by the same names.

A new setting is a field here twice, and a flag in `cli/options.py`; the functions between hand on the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.train.cache_folder import CACHE_SIZE

TOLD_BY_FILES = ("backbone", "epochs", "augment", "cache", "cache_size")  # in task files too


class Given(TypedDict, total=False):
    """What of a `Setup` was asked for, as keyword arguments. None is as good as nothing: the default holds."""

    backbone: str | None
    epochs: int | None
    augment: bool | None
    runs: str | Path | None
    precision: str | None
    device: str | None
    prices: str | Path | None
    cache: str | Path | None
    cache_size: str | None
    max_memory: str | None


@dataclass(frozen=True)
class Setup:
    """Every choice made. Pure data."""

    backbone: str = "minilm"  # "hf:FOLDER", "word_vectors:FILE", "runs/ID", "random:NAME" …: `core.opening`
    epochs: int | None = None  # passes over the data; None: from rows and classes
    augment: bool = True  # show random parts and mirror images while the whole network trains
    runs: str = "runs"  # the folder where runs are kept and found; one that is there already costs nothing
    precision: str = "auto"  # "bf16", "fp32", or "auto": bf16 where the device multiplies in it
    device: str = "auto"  # "cpu", "cuda", or "auto": CUDA where there is one
    prices: str | None = None  # a price list for money and CO2e
    cache: str | None = None  # for passes of the frozen backbone; None: $GRAFTWORK_CACHE, or in the user's cache folder
    cache_size: str = CACHE_SIZE  # at most so much of them; "0" keeps none
    max_memory: str | None = None  # that training may take: batches are cut before it runs out

    @classmethod
    def of(cls, given: Given) -> Setup:
        """With the defaults for what was not given."""
        asked = said(given)
        return cls(**asked | {key: str(value) for key, value in asked.items() if isinstance(value, Path)})

    @property
    def recipe(self) -> Recipe:
        """How long to train, at the method's own learning rate."""
        return Recipe(epochs=self.epochs, augment=self.augment)


@dataclass(frozen=True)
class OpenedBy:
    """What opens a shop: for another process, and for receipts. Pure data."""

    task: Task
    methods: tuple[Mapping[str, Any], ...]  # `Named.config` of each
    setup: Setup


def said(given: Given) -> dict[str, Any]:
    """Without what is None."""
    return {key: value for key, value in given.items() if value is not None}


def over(settings: Mapping[str, Any], given: Given) -> Given:
    """What was given, before what a task file says of the same."""
    return cast(Given, {name: settings[name] for name in TOLD_BY_FILES if name in settings} | said(given))
