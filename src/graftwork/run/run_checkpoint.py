"""The checkpoints of a run on its way, with its accounts: log, price and profile go on where they were interrupted."""

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
from graftwork.core.method import Tally, Workbench
from graftwork.machine.environment import DISTRIBUTIONS, arithmetic, version
from graftwork.machine.signals import Waiting, waiting
from graftwork.run.recorded_code import PACKAGE, source_digest
from graftwork.train.checkpoint_files import EVERY_SECONDS, Checkpoints, Interval

LOG = "log"  # the tensor that holds log.jsonl
T = TypeVar("T")
PassName = tuple[str, int | None]  # of a frozen pass: split and depth


def computed_in(numerics: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides the next bits of a training, beside what the run's id is of: processor, libraries, code."""
    libraries = {name: version(name) for name in (*DISTRIBUTIONS, "gensim")}
    return arithmetic(numerics) | {"libraries": libraries, "sources": source_digest(PACKAGE)}


class RunCheckpoint:
    """Implements `Keeper` for the fit in one workbench. What an interrupted attempt had paid is paid for good."""

    def __init__(self, checkpoints: Checkpoints, lines: io.StringIO, bench: Workbench):
        """`lines` is the log of the run."""
        self.checkpoints, self.lines, self.bench = checkpoints, lines, bench
        self.attempts, self.earlier = 1, Phase()  # and what the fits of those before this one took
        self._watch, self._interval = Stopwatch(), Interval(EVERY_SECONDS)
        self._paid: set[PassName] = set()  # the passes that were opened before, by name only
        self._opened: set[PassName] = set()

    def found(self) -> Checkpoint | None:
        """The last checkpoint; log, price and profile are from now on as they were then."""
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
        """Between steps a checkpoint is written when it is due, or when a signal waits."""
        with waiting() as signals:
            yield _Keep(self, signals)

    def is_paid(self, split: str, depth: int | None) -> bool:
        """Whether this pass is in the price already, by an earlier attempt; it is opened now."""
        self._opened.add((split, depth))
        return (split, depth) in self._paid

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint is."""
        return self._interval.is_due()

    def with_account(self, checkpoint: Checkpoint) -> Checkpoint:
        """And with log, price and profile as they are now."""
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
        """One with its account. That it can't be written is no reason to end the run."""
        began = time.monotonic()
        with self.bench.profile.phase("write"):
            self.checkpoints.try_write(whole)
        self._interval.wrote(time.monotonic() - began)


@dataclass
class _Keep:
    """Implements `Keep`."""

    keeping: RunCheckpoint
    signals: Waiting

    def __call__(self, made: Made) -> None:
        """Written when one is due, or when a signal waits."""
        if self.signals.came or self.keeping.is_due:
            self.keeping.write(self.keeping.with_account(made()))
        if self.signals.came:
            self.signals.let_go()

    def through(self, made: Made, work: Callable[[], T]) -> T:
        """Of work that a signal ended nothing is in the account: what it opened and counted comes anew."""
        whole = self.keeping.with_account(made())
        return self.signals.during(work, partial(self.keeping.write, whole))
