"""A suite: a published set of tasks, each with its official files, metrics and label names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]  # as a line of JSONL: the inputs by role and "label", or "index" for rows without labels


@dataclass(frozen=True)
class Source:
    """An official file and the reader of its rows."""

    path: Path
    read: Callable[[], Iterator[Row | None]]  # None for a row that is malformed in the distribution itself


@dataclass(frozen=True)
class OfficialTask:
    """A task of a suite, with its files on disk."""

    name: str  # the suite's name for it
    kind: str
    metrics: tuple[str, ...]  # the official ones, the headline first
    train: Source
    tests: Mapping[str, Source | None]  # name in the table -> labelled rows, None: drawn from train; the first
    # is the test split of the board
    unlabelled: Mapping[str, Source] = field(default_factory=dict)  # submission file -> rows to predict, in its order
    positive: str | None = None  # the positive class of f1
    ask: Callable[[Row], Any] | None = None  # converts a row for `TaskModule.predict`; None: its inputs by role
    note: str = ""  # how the task is posed here, if there was a choice
    validation: Source | None = None  # None: drawn from train

    def missing(self) -> list[Path]:
        """Return the labelled files that do not exist."""
        sources = (self.train, self.validation, *self.tests.values())
        named = [source.path for source in sources if source is not None]
        return [path for path in named if not path.exists()]


@dataclass(frozen=True)
class Suite:
    """A registered suite: everything except its published scores."""

    title: str
    tasks: Callable[[Path], Sequence[OfficialTask]]  # folder with the official files -> tasks; any file may be missing
    left_out: Mapping[str, str] = field(default_factory=dict)  # unsupported task -> reason
    hand_in: Callable[[str, Iterable[tuple[Row, Any]]], Iterator[str]] | None = None
    # (file, rows with their predictions: a label or a number) -> lines of the submission file for the suite's server
    hidden: bool = True  # True if the official test labels are not public, so that scores are on dev files
