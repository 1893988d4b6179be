"""Settings of computation and storage, shared by name by every function that makes runs.

A new setting is a field in both classes here, and a flag in `cli/options.py`; the functions between pass all settings
on. Its help text is defined once here, for the flag and for the functions' docstrings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, cast, get_type_hints

from graftwork.config import DEFAULT_BACKBONE
from graftwork.core.arguments import told_arguments
from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.io.cache_folder import CACHE_SIZE

F = TypeVar("F", bound=Callable[..., Any])
TOLD_BY_FILES = ("backbone", "epochs", "batch_size", "augment", "cache", "cache_size")  # also in task files


class GivenSettings(TypedDict, total=False):
    """The keyword arguments for a `RunSettings`, with their help texts. None means not given."""

    backbone: Annotated[
        str | None,
        "Pretrained network: minilm, hf:FOLDER, hf:HUB/NAME, word_vectors:FILE or runs/ID; random:NAME has random "
        f"weights, NAME@128 reads at most 128 tokens of a text.  [default: {DEFAULT_BACKBONE}]",
    ]
    epochs: Annotated[int | None, "Training epochs.  [default: by the numbers of rows and classes]"]
    batch_size: Annotated[int | None, f"Rows per step.  [default: {Recipe.batch_size}]"]
    augment: Annotated[
        bool | None,
        "Augment images by random crops and mirroring, if a step runs the whole network.  [default: augment]",
    ]
    runs: Annotated[str | Path | None, "Folder where runs are saved, and found again.  [default: runs]"]
    precision: Annotated[str | None, "Numeric precision; auto: the faster one on this machine.  [default: auto]"]
    device: Annotated[str | None, "Device; auto: cuda if there is a GPU.  [default: auto]"]
    prices: Annotated[str | Path | None, "Price list for money and CO2e; see docs/prices.example.toml."]
    cache: Annotated[
        str | Path | None, "Folder for cached hidden states of the frozen backbone.  [default: ~/.cache/graftwork]"
    ]
    cache_size: Annotated[str | None, f"Largest size of the cache; 0: no cache.  [default: {CACHE_SIZE}]"]
    max_memory: Annotated[str | None, "Largest memory for training, e.g. 4GB; batches are split to stay below it."]


_HINTS = get_type_hints(GivenSettings, include_extras=True)
WHAT: Mapping[str, str] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}  # setting -> help text


@dataclass(frozen=True)
class RunSettings:
    """All settings, with the names of `GivenSettings` and defaults filled in. Pure data."""

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
        """Build from the given settings and the defaults."""
        asked = without_none(given)
        return cls(**asked | {key: str(value) for key, value in asked.items() if isinstance(value, Path)})

    @property
    def recipe(self) -> Recipe:
        """The recipe, with the method's default learning rate."""
        return Recipe(epochs=self.epochs, batch_size=self.batch_size, augment=self.augment)


@dataclass(frozen=True)
class OpenedBy:
    """The arguments that open a session, for another process and for receipts. Pure data."""

    task: Task
    methods: tuple[Mapping[str, Any], ...]  # `ConfiguredMethod.config` of each
    setup: RunSettings


def takes_settings(function: F) -> F:
    """Decorate a function with `**given: Unpack[GivenSettings]`: add every setting to its signature and docstring.

    Wrong arguments are refused as by `told_arguments`.
    """
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
    return told_arguments(function)


def without_none(given: GivenSettings) -> dict[str, Any]:
    """Return the settings that are not None."""
    return {key: value for key, value in given.items() if value is not None}


def over(settings: Mapping[str, Any], given: GivenSettings) -> GivenSettings:
    """Return the given settings, with those of a task file as defaults."""
    return cast(
        GivenSettings, {name: settings[name] for name in TOLD_BY_FILES if name in settings} | without_none(given)
    )
