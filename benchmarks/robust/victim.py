"""`graft` that checkpoints often and marks its progress, for `kills.py`: `python victim.py MARKS SECONDS WORDS…`.

MARKS is a file of 24 bytes, rewritten in place: the position, the steps of this attempt, and when the first one began.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graftwork.core.checkpoint import Keep, Made

T = TypeVar("T")
MARK = struct.Struct("<qqd")
BEFORE, STEPPING, AFTER = range(3)  # before the first step, during the steps, after the last one


class Marks:
    """The marks file, written by the victim and read by the killer."""

    def __init__(self, path: Path):
        self._handle, self._began = os.open(path, os.O_CREAT | os.O_RDWR, 0o644), 0.0

    def write(self, where: int, steps: int) -> None:
        """Write position and steps."""
        if not steps:
            self._began = time.time()
        os.pwrite(self._handle, MARK.pack(where, steps, self._began), 0)

    def read(self) -> tuple[int, int, float]:
        """Return the position, the steps of this attempt, and when the first of them began."""
        content = os.pread(self._handle, MARK.size, 0)
        return MARK.unpack(content) if len(content) == MARK.size else (BEFORE, 0, 0.0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


@dataclass(frozen=True)
class _Marked:
    """A `Keep` that marks every step."""

    keep: Keep
    step: Callable[[], None]

    def __call__(self, made: Made) -> None:
        self.step()
        self.keep(made)

    def through(self, made: Made, work: Callable[[], T]) -> T:
        return self.keep.through(made, work)


def watched(marks: Marks, every: float) -> None:
    """Make this process's runs and pre-trainings checkpoint every `every` seconds, and mark every step."""
    from graftwork.pretrain.pretrain_folder import RunWriter
    from graftwork.run import run_checkpoint
    from graftwork.train import checkpoint_files

    run_checkpoint.EVERY_SECONDS, checkpoint_files.SHARE = (
        every,
        1.0,
    )  # even if writing takes long compared with tiny steps
    steps, checkpoint, close = run_checkpoint.RunCheckpoint.steps, RunWriter.checkpoint, RunWriter.close
    done = 0

    def step() -> None:
        nonlocal done
        marks.write(STEPPING, done)
        done += 1

    @contextmanager
    def stepping(self: run_checkpoint.RunCheckpoint) -> Iterator[Any]:
        with steps(self) as keep:
            yield _Marked(keep, step)
        marks.write(AFTER, done)

    def marked_checkpoint(self: RunWriter, *rest: Any) -> None:
        step()
        checkpoint(self, *rest)

    def marked_close(self: RunWriter) -> None:
        marks.write(AFTER, done)
        close(self)

    run_checkpoint.RunCheckpoint.steps = stepping  # type: ignore[method-assign]
    RunWriter.checkpoint, RunWriter.close = marked_checkpoint, marked_close  # type: ignore[method-assign]


if __name__ == "__main__":
    own, seconds = Marks(Path(sys.argv[1])), float(sys.argv[2])
    own.write(BEFORE, 0)
    watched(own, seconds)
    from graftwork.cli.main import main

    sys.exit(main(sys.argv[3:]))
