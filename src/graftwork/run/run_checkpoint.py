"""Checkpoints of a run in progress, with its account: log, costs and profile continue from the interruption."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from graftwork.core.checkpoint import Checkpoint, Keep, Made
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import Workbench
from graftwork.core.tally import Tally
from graftwork.machine.environment import DISTRIBUTIONS, arithmetic, version
from graftwork.machine.signals import Waiting, waiting
from graftwork.run.recorded_code import PACKAGE, source_digest
from graftwork.train.checkpoint_files import EVERY_SECONDS, Checkpoints, Interval

LOG = "log"  # the tensor that holds log.jsonl
T = TypeVar("T")
PassName = tuple[str, int | None]  # split and depth of a frozen pass


def computed_in(numerics: Mapping[str, Any]) -> dict[str, Any]:
    """Return what determines the bits of a training besides the run's id: processor, libraries, code."""
    libraries = {name: version(name) for name in (*DISTRIBUTIONS, "gensim")}
    return arithmetic(numerics) | {"libraries": libraries, "sources": source_digest(PACKAGE)}


class RunCheckpoint:
    """The `Keeper` of the fit in one workbench. Costs charged to an interrupted attempt stay charged."""

    def __init__(self, checkpoints: Checkpoints, lines: io.StringIO, bench: Workbench):
        """Keep checkpoints of the fit in `bench`; `lines` is the log of the run."""
        self.checkpoints, self.lines, self.bench = checkpoints, lines, bench
        self.attempts, self.earlier = 1, Phase()  # attempts so far; fit time of the earlier ones
        self._watch, self._interval = Stopwatch(), Interval(EVERY_SECONDS)
        self._paid: set[PassName] = set()  # passes opened by earlier attempts
        self._opened: set[PassName] = set()

    def found(self) -> Checkpoint | None:
        """Return the last checkpoint or None; restore log, costs and profile to its state."""
        found = self.checkpoints.read()
        if found is None:
            return None
        account, tensors = found.numbers["account"], dict(found.tensors)
        self.attempts, self.earlier = account["attempts"] + 1, Phase(**account["fit"])
        self.bench.charged.add(Phase(**account["charged"]))
        self.bench.tally.include(Tally(**account["tally"]))
        self.bench.profile.add(account["profile"])
        self._paid = {(split, depth) for split, depth in account["passes"]}
        self.lines.write(tensors.pop(LOG).numpy().tobytes().decode())
        return Checkpoint(found.numbers["training"], tensors)

    @contextmanager
    def steps(self) -> Iterator[Keep]:
        """Return a context that writes a checkpoint between steps, when one is due or a signal is pending."""
        with waiting() as signals:
            yield _Keep(self, signals)

    def already_charged(self, split: str, depth: int | None) -> bool:
        """Record that this attempt has opened the pass; return True if an earlier one was charged for it."""
        self._opened.add((split, depth))
        return (split, depth) in self._paid

    @property
    def is_due(self) -> bool:
        """True if a checkpoint is due."""
        return self._interval.is_due()

    def with_account(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint extended by the current log, costs and profile."""
        spent = self._watch.read() + self.earlier
        account = {
            "attempts": self.attempts,
            "fit": asdict(spent),
            "charged": asdict(self.bench.charged),
            "tally": asdict(self.bench.tally),
            "profile": self.bench.profile.read(),
            "passes": sorted(self._paid | self._opened, key=str),
        }
        import torch

        lines = np.frombuffer(self.lines.getvalue().encode(), dtype=np.uint8)
        tensors = {**checkpoint.tensors, LOG: torch.from_numpy(lines.copy())}
        return Checkpoint({"account": account, "training": checkpoint.numbers}, tensors)

    def write(self, whole: Checkpoint) -> None:
        """Write a checkpoint with its account. A write error does not end the run."""
        began = time.monotonic()
        with self.bench.profile.phase("write"):
            self.checkpoints.try_write(whole)
        self._interval.wrote(time.monotonic() - began)


@dataclass
class _Keep:
    """The `Keep` of a `RunCheckpoint`."""

    keeping: RunCheckpoint
    signals: Waiting

    def __call__(self, made: Made) -> None:
        """Write a checkpoint when one is due or a signal is pending."""
        if self.signals.came or self.keeping.is_due:
            self.keeping.write(self.keeping.with_account(made()))
        if self.signals.came:
            self.signals.let_go()

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """Run `work`; if a signal interrupts it, write the checkpoint and account from before it."""
        whole = self.keeping.with_account(made())
        return self.signals.during(work, partial(self.keeping.write, whole))
