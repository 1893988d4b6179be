"""How runs are computed and where they are kept: what every function that makes runs of tasks takes by the same names.

A new setting is a field here twice, and a flag in `cli/options.py`; the functions between hand on the whole. What it
says stands here once, for the flag's help and for that of the functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, cast, get_type_hints

from graftwork.config import DEFAULT_BACKBONE
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.io.cache_folder import CACHE_SIZE

F = TypeVar("F", bound=Callable[..., Any])
TOLD_BY_FILES = ("backbone", "epochs", "batch_size", "augment", "cache", "cache_size")  # in task files too


class GivenSettings(TypedDict, total=False):
    """What of a `RunSettings` was asked for, as keyword arguments, and what it says. None is as good as nothing."""

    backbone: Annotated[
        str | None,
        f"minilm, hf:FOLDER, hf:HUB/NAME, word_vectors:FILE, runs/ID or random:NAME.  [default: {DEFAULT_BACKBONE}]",
    ]
    epochs: Annotated[int | None, "Passes over the data.  [default: from rows and classes]"]
    batch_size: Annotated[int | None, f"Rows a step.  [default: {Recipe.batch_size}]"]
    augment: Annotated[
        bool | None,
        "Show random parts and mirror images where a step runs the whole network.  [default: augment]",
    ]
    runs: Annotated[str | Path | None, "Where runs are kept and found.  [default: runs]"]
    precision: Annotated[str | None, "auto, bf16 or fp32.  [default: auto]"]
    device: Annotated[str | None, "cpu or cuda; auto is cuda where there is one.  [default: auto]"]
    prices: Annotated[str | Path | None, "Price list for money and CO2e; see docs/prices.example.toml."]
    cache: Annotated[str | Path | None, "Where passes of the frozen backbone are kept.  [default: ~/.cache/graftwork]"]
    cache_size: Annotated[str | None, f"At most so much of them; 0 keeps none.  [default: {CACHE_SIZE}]"]
    max_memory: Annotated[str | None, "Cut batches so that training takes no more, e.g. 4GB."]


_HINTS = get_type_hints(GivenSettings, include_extras=True)
WHAT: Mapping[str, str] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}  # setting -> what it says


@dataclass(frozen=True)
class RunSettings:
    """Every choice made, by the names of `GivenSettings`. Pure data."""

    backbone: str = DEFAULT_BACKBONE
    epochs: int | None = None
    batch_size: int = Recipe.batch_size
    augment: bool = True
    runs: str = "runs"
    precision: str = "auto"
    device: str = "auto"
    prices: str | None = None
    cache: str | None = None
    cache_size: str = CACHE_SIZE
    max_memory: str | None = None

    @classmethod
    def of(cls, given: GivenSettings) -> RunSettings:
        """With the defaults for what was not given."""
        asked = said(given)
        return cls(**asked | {key: str(value) for key, value in asked.items() if isinstance(value, Path)})

    @property
    def recipe(self) -> Recipe:
        """How long to train, at the method's own learning rate."""
        return Recipe(epochs=self.epochs, batch_size=self.batch_size, augment=self.augment)


@dataclass(frozen=True)
class OpenedBy:
    """What opens a session: for another process, and for receipts. Pure data."""

    task: Task
    methods: tuple[Mapping[str, Any], ...]  # `Named.config` of each
    setup: RunSettings


def takes_settings(function: F) -> F:
    """Of a function with `**given: Unpack[Given]`: its signature and its docstring name every setting."""
    signature = inspect.signature(function)
    own = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
    settings = [
        inspect.Parameter(
            item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=_HINTS[item.name].__origin__
        )
        for item in fields(RunSettings)
    ]
    vars(function)["__signature__"] = signature.replace(parameters=[*own, *settings])
    lines = [f"    {name}: {what.replace('  ', ' ')}" for name, what in WHAT.items()]
    function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Settings of its runs:", "", *lines])
    return function


def said(given: GivenSettings) -> dict[str, Any]:
    """Without what is None."""
    return {key: value for key, value in given.items() if value is not None}


def over(settings: Mapping[str, Any], given: GivenSettings) -> GivenSettings:
    """What was given, before what a task file says of the same."""
    return cast(GivenSettings, {name: settings[name] for name in TOLD_BY_FILES if name in settings} | said(given))
