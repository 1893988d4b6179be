"""Pilot fits: a fit to a few rows whose calls to the workbench are recorded with their times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor

from graftwork.budget.batch_lengths import Rows
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.kind import Kind
from graftwork.core.method import Fitted, FrozenPass, FrozenPasses, Logits, Scorer, Setting, Workbench
from graftwork.core.run import RunSpec
from graftwork.core.task import Split
from graftwork.core.writing import reading_part
from graftwork.registry import kinds
from graftwork.run.session import Session
from graftwork.train.frozen_pass import FrozenStore

Timer = Callable[[], float]


def median_seconds(clock: Timer, work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median seconds of `work` after one warm-up."""

    def seconds() -> float:
        began = clock()
        work()
        return clock() - began

    work()
    return statistics.median(seconds() for _ in range(repeats))


@dataclass
class Trace:
    """The time-stamped calls of a pilot fit."""

    clock: Timer
    marks: list[tuple[str, float]] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """Record that `name` happens now."""
        self.marks.append((name, self.clock()))

    def times(self, name: str, before: float = math.inf, after: float = -math.inf) -> list[float]:
        """Return the times of `name` that lie between `after` and `before`, both excluded."""
        return [time for mark, time in self.marks if mark == name and after < time < before]

    def last(self, name: str, otherwise: float) -> float:
        """Return the last time of `name`, or `otherwise`."""
        return max(self.times(name), default=otherwise)

    @property
    def began(self) -> float:
        """The time of the first mark."""
        return self.marks[0][1]

    @property
    def ended(self) -> float:
        """The time of the last mark."""
        return self.marks[-1][1]


class _ReportingKind:
    """A kind that reports every call of its loss."""

    def __init__(self, kind: Kind, tell: Callable[[], None]):
        self._kind, self._tell = kind, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        self._tell()
        return self._kind.loss(logits, targets)


@dataclass(frozen=True)
class _ReportingPasses:
    """Frozen passes that report when one is requested and when it is returned."""

    passes: FrozenPasses
    trace: Trace

    def get(self, split: Split, depth: int | None, bench: Workbench) -> FrozenPass:
        self.trace.mark("asked")
        found = self.passes.get(split, depth, bench)
        self.trace.mark("given")
        return found


def fit_pilot(
    session: Session,
    method: ConfiguredMethod,
    spec: RunSpec,
    clock: Timer,
    rows: Rows,
    checked: Rows,
    batches: Sequence[Rows] = (),
) -> tuple[Fitted, Trace]:
    """Fit a method to `rows` of train and validate it on the rows `checked`; return the fitted method and its trace.

    `batches` (indices into `rows`) form the only epoch. Marks of the trace: "began", "asked" (a frozen pass is
    requested), "given" (it is returned), "loss", "scored", "went on" (a step or a block is done), "validated" (an epoch
    was validated, by a score or by the loss of texts), "ended".
    """
    task, trace = session.dataset.task, Trace(clock)
    train, validation = _part(session.dataset.train, rows), _part(session.dataset.validation, checked)
    kind = cast(Kind, _ReportingKind(kinds.get(task.kind), lambda: trace.mark("loss")))
    backbone = session.backbone if method.method.uses_backbone else None
    passes = FrozenStore().of(reading_part(backbone), f"sample of {session.dataset.digest}") if backbone else None
    setting = Setting(task, kind, backbone)
    scorer = Scorer(task.metrics[0], setting, validation)

    def reached(logits: Logits, examples: Rows | None = None) -> float:
        trace.mark("scored")
        return scorer(logits, examples)

    def logged(line: Mapping[str, Any]) -> None:
        if "epoch" in line:
            trace.mark("validated")

    bench = Workbench(
        setting=setting,
        train=train,
        validation=validation,
        seed=spec.seed,
        recipe={**spec.recipe, "epochs": 1, "steps": len(batches)},
        order=lambda lengths, epoch: list(batches),
        passes=_ReportingPasses(passes, trace) if passes else None,
        score=reached,
        log=logged,
        progress=lambda done, text: trace.mark("went on"),
    )
    trace.mark("began")
    fitted = method.method.fit(bench)
    trace.mark("ended")
    return fitted, trace


def _part(split: Split, rows: Rows) -> Split:
    """Return some rows of a split as a split of the same name."""
    return Split(split.name, tuple(split.examples[row] for row in rows), split.targets[rows])
