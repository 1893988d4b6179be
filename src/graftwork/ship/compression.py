"""The interface of a compression. `compressions/NAME.py` registers one, a frozen dataclass with its settings as fields.

A compression reads the folder of a task module and writes that of a smaller or faster one, which opens, predicts and
serves like any other. So compressions combine by being applied one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from graftwork.core.example import Example
from graftwork.core.progress import Progress, silent
from graftwork.core.task import Split
from graftwork.module.task_module import TaskModule


@dataclass(frozen=True)
class CompressionData:
    """The data that a compression may learn from. It never holds the test split."""

    train: Split
    validation: Split
    unlabelled: tuple[Example, ...] = ()  # further texts without labels, which a teacher may answer


@dataclass(frozen=True)
class Compressed:
    """The outcome of one compression that was applied."""

    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON: what was removed, counts, settings chosen
    seconds: float = 0.0  # wall time


class Compression(Protocol):
    """One way of making a task module smaller or faster."""

    EXACT: ClassVar[bool]  # True if no answer changes but by rounding: then no score has to be measured

    def unfit(self, module: TaskModule) -> str:
        """Return why this compression does not apply to `module`, or an empty string."""

    def apply(
        self, module: TaskModule, folder: Path, data: CompressionData, *, seed: int, progress: Progress = silent
    ) -> Compressed:
        """Write the compressed module to the new `folder`, with a self-test of its own answers.

        Raises `GraftworkError`; the caller removes what was written then.
        """
