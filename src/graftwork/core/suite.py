"""A suite: a published set of tasks, each with its official files, metrics and names of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]  # as a line of JSONL: the inputs by role and "label", of rows without labels "index"


@dataclass(frozen=True)
class Source:
    """An official file and how its rows are read."""

    path: Path
    read: Callable[[], Iterator[Row | None]]  # None for a row that is broken in the distribution itself


@dataclass(frozen=True)
class OfficialTask:
    """A task of a suite, as it lies on disk."""

    name: str  # as the suite calls it
    kind: str
    metrics: tuple[str, ...]  # the official ones, the headline first
    train: Source
    tests: Mapping[str, Source | None]  # what the table calls them -> labelled rows, None: drawn from train; the first
    # are the test split of the board
    unlabelled: Mapping[str, Source] = field(default_factory=dict)  # file to hand in -> rows to answer, in its order
    positive: str | None = None  # the class that f1 is of
    ask: Callable[[Row], Any] | None = None  # a row as `TaskModule.predict` takes it; None: its inputs by role
    note: str = ""  # how the task is asked here, where that is a choice
    validation: Source | None = None  # None: drawn from train

    def missing(self) -> list[Path]:
        """The labelled files that are not there."""
        sources = (self.train, self.validation, *self.tests.values())
        named = [source.path for source in sources if source is not None]
        return [path for path in named if not path.exists()]


@dataclass(frozen=True)
class Suite:
    """What is registered: everything about a suite but its figures."""

    title: str
    tasks: Callable[[Path], Sequence[OfficialTask]]  # of the folder with the official files; each may be missing
    left_out: Mapping[str, str] = field(default_factory=dict)  # task that can't be asked here -> why
    hand_in: Callable[[str, Iterable[tuple[Row, Any]]], Iterator[str]] | None = None
    # (file, rows with what was answered: a label or a number) -> the lines of the file that the suite's server takes
    hidden: bool = True  # whether the labels of its official test rows are, so that dev files are scored on
