"""The interface of a compression. `compressions/NAME.py` registers one, a frozen dataclass with its settings as fields.

A compression reads the folder of a task module and writes that of a smaller or faster one, which opens, predicts and
serves like any other. So compressions combine by being applied one after the other. Most change the network: they take
a copy of it (`folding.folded`, or the module's backbone), change that, and write it with `standalone.save_standalone`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from graftwork.core.example import Example
from graftwork.core.method import Entries
from graftwork.core.progress import Progress, silent
from graftwork.core.task import Split
from graftwork.errors import ConfigError
from graftwork.module.task_module import TaskModule


@dataclass(frozen=True)
class CompressionData:
    """The data that a compression may learn from. It never holds the test split."""

    train: Split
    validation: Split
    unlabelled: tuple[Example, ...] = ()  # more texts without labels, for a teacher to predict


class Compression(Protocol):
    """One way of making a task module smaller or faster."""

    EXACT: ClassVar[bool]  # True if predictions change by rounding at most
    STORES: ClassVar[bool]  # True if it only stores weights in fewer bits, which runtimes do in their own way
    ORDER: ClassVar[int]  # position on the ladder of `compress`: exact ones, then training ones, then storing ones
    LADDER: ClassVar[Entries]  # the settings that the ladder tries, in this order, until one is kept; () for none

    def unfit(self, module: TaskModule) -> str:
        """Return why this compression does not apply to `module`, or an empty string."""

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Mapping[str, Any]:
        """Write the compressed module to the new `folder`, with a self-test of its own logits.

        Returns facts for the report, as JSON: counts, what was removed, the settings that were chosen.

        Raises `GraftworkError`; the caller removes what was written then.
        """


@runtime_checkable
class Trains(Protocol):
    """A compression that trains a network, which takes minutes."""

    def passes(self, module: TaskModule, data: CompressionData) -> float:
        """Estimate the cost of training, as the number of texts that `module` could predict in the same time."""


def require_fit(name: str, compression: Compression, module: TaskModule) -> None:
    """Raise `ConfigError` where `module` is unfit for the compression called `name`."""
    reason = compression.unfit(module)
    if reason:
        raise ConfigError(
            f"{name} can't be used here: {reason}", where=str(module.folder), do="name other rungs: --rungs merge,int8"
        )
