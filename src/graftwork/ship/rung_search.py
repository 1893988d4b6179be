"""The search over compressions, called rungs: each is tried on the result of the rungs kept before it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graftwork.core.meter import Stopwatch
from graftwork.core.method import Logits
from graftwork.core.progress import Progress, part_of
from graftwork.errors import GraftworkError, StorageError
from graftwork.machine.thread_count import limited_to
from graftwork.module.exported_folder import is_exported
from graftwork.module.task_module import TaskModule
from graftwork.ship.compression import Compression, CompressionData, Trains
from graftwork.ship.rung_measure import RelativeSpeed, ScoreLoss, least_shown, loss_of, pace, stored_with_backbone
from graftwork.ship.unwrapped import unwrapped

FEWER, FASTER = 0.99, 1.02  # shares of before: a rung is kept with at most these bytes, or at least this speed
NO_SLOWER = 0.9  # an exact rung is slower if its relative speed is below this; a smaller change may be noise
NO_LARGER = 1.05  # an exact rung is larger if its relative size is above this


@dataclass(frozen=True)
class Stage:
    """A module in the search: the original, or what rungs have made of it."""

    module: TaskModule
    pace: RelativeSpeed
    bytes: int  # with the backbone

    def value(self, aim: str) -> float:
        """Return what the aim is judged by; higher is better."""
        if aim == "bytes":
            return 1 / self.bytes
        return self.pace.ratio if aim == "speed" else 1 / (self.pace.joules_ratio or 1.0)


@dataclass(frozen=True)
class RungTried:
    """A rung that was tried, with its verdict and measurements: one line of the report."""

    rung: str  # the compression with its settings, as typed
    verdict: str  # "kept", or why it is not
    kept: bool = False
    exact: bool = False  # changes no answer
    loss: ScoreLoss | None = None  # None: it was not applied
    stage: Stage | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def given_up(self) -> RungTried:
        """Return it as not kept, because other rungs gave a better result."""
        return replace(self, kept=False, verdict="given up: other rungs gave more") if self.kept else self

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        found: dict[str, Any] = {"rung": self.rung, "kept": self.kept, "exact": self.exact, "verdict": self.verdict}
        if self.loss is not None and self.stage is not None:
            found |= self.loss.as_json() | {
                "speed_ratio": self.stage.pace.ratio,
                "joules_ratio": self.stage.pace.joules_ratio,
                "bytes": self.stage.bytes,
            }
        return found | {"seconds": self.seconds, "facts": dict(self.facts)}


@dataclass
class RungSearch:
    """A search in progress: the rungs tried so far, and the stage that they have reached."""

    original: TaskModule
    data: CompressionData
    allowed: float  # the largest loss, a fraction
    aim: str  # "speed", "bytes" or "joules"
    seed: int
    work: Path  # an empty folder
    tried: list[RungTried] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch, began = Stopwatch(), time.monotonic()
        self.before: Logits = self.original.fitted.logits(self.data.validation.examples)
        self.per_text = (time.monotonic() - began) / len(self.data.validation.examples)  # seconds per prediction
        joules = 1.0 if self.aim == "joules" else None
        self.original_bytes = stored_with_backbone(self.original)
        self.first = Stage(self.original, RelativeSpeed(1.0, joules), self.original_bytes)

    @property
    def stage(self) -> Stage:
        """The stage reached: that of the last rung kept, or the original."""
        return self._stages()[-1]

    @property
    def base(self) -> TaskModule:
        """The module that the next rung is applied to: the stage's, or the one that it was exported from."""
        return [one.module for one in self._stages() if not is_exported(one.module.folder)][-1]

    def _stages(self) -> list[Stage]:
        return [self.first, *(one.stage for one in self.tried if one.kept and one.stage is not None)]

    def foreseen(self, compression: Compression) -> float | None:
        """Estimate the seconds of training of a rung; None if it does not train or will not be tried."""
        if compression.unfit(self.original) or self._hopeless(compression) or not isinstance(compression, Trains):
            return None
        return compression.passes(self.original, self.data) * self.per_text

    def _hopeless(self, compression: Compression) -> bool:
        """Return whether training would be in vain: too few validation rows to show that any loss is small enough."""
        return isinstance(compression, Trains) and least_shown(len(self.data.validation.examples)) > self.allowed

    def climb_all(self, rungs: Sequence[tuple[str, Compression]], progress: Progress) -> None:
        """Try every rung in order. Raises as `climb`."""
        for place, (label, compression) in enumerate(rungs):
            self.climb(label, compression, part_of(progress, place, len(rungs), label))

    def climb_alternatives(self, rungs: Sequence[tuple[str, Compression]], progress: Progress) -> None:
        """Try rungs in order; settings of one compression are alternatives, the strongest first. Raises as `climb`.

        Where the last rung loses too much on top of the others, the last of them that has an untried alternative gives
        way to it, and the rungs after it are tried again; and so on. The best of the results is kept. No rung is
        trained twice, so that the search takes no longer than was foreseen.
        """
        self._climb_alternatives(rungs, 0, progress)
        best, value = list(self.tried), self.stage.value(self.aim)
        while self._lost_too_much() and (again := self._next_alternative(rungs)) is not None:
            place, start = again
            self.tried[place:] = [one.given_up() for one in self.tried[place:]]
            self._climb_alternatives(rungs, start, progress)
            if self.stage.value(self.aim) > value:
                best, value = list(self.tried), self.stage.value(self.aim)
        self.tried = [*best, *(one.given_up() for one in self.tried[len(best) :])]

    def _climb_alternatives(self, rungs: Sequence[tuple[str, Compression]], start: int, progress: Progress) -> None:
        for place, (label, compression) in enumerate(rungs[start:], start):
            trained = isinstance(compression, Trains) and any(one.rung == label for one in self.tried)
            if not trained and not any(one.kept and _same(one.rung, label) for one in self.tried):
                self.climb(label, compression, part_of(progress, place, len(rungs), label))

    def _lost_too_much(self) -> bool:
        """Return whether the last rung was refused for its loss."""
        loss = self.tried[-1].loss
        return loss is not None and not loss.within(self.allowed)

    def _next_alternative(self, rungs: Sequence[tuple[str, Compression]]) -> tuple[int, int] | None:
        """Return the last kept rung that trains and has an untried alternative, by its place in `tried`, and the place
        in `rungs` of that alternative."""
        known = {one.rung for one in self.tried}
        untried = [
            (place, label)
            for place, (label, compression) in enumerate(rungs)
            if label not in known and isinstance(compression, Trains)
        ]
        for place, one in reversed(list(enumerate(self.tried))):
            others = [other for other, label in untried if one.kept and _same(one.rung, label)]
            if others:
                return place, others[0]
        return None

    def climb(self, label: str, compression: Compression, progress: Progress) -> None:
        """Try one rung on the current stage; if it is kept, its result is the new stage.

        Raises `StorageError`; any other `GraftworkError` of the compression becomes its verdict.
        """
        reason = compression.unfit(self.base)
        if reason or self._hopeless(compression):
            why = f"does not apply: {reason}" if reason else "not trained: too few rows to show its loss to be small"
            self.tried.append(RungTried(label, why))
            return
        progress(0.0, "applying")
        folder = self.work / str(len(self.tried))
        try:
            began = time.monotonic()
            facts = compression.apply(self.base, folder, self.data, seed=self.seed, progress=progress)
            seconds = time.monotonic() - began
            with limited_to(1):  # an onnxruntime session keeps the number of threads that it is opened with
                made = unwrapped(TaskModule.load(folder, device="cpu"))
        except StorageError:
            raise
        except GraftworkError as error:
            self.tried.append(RungTried(label, f"failed: {error.what}"))
            shutil.rmtree(folder, ignore_errors=True)
            return
        progress(0.9, "measuring")
        validation = self.data.validation
        after = made.fitted.logits(validation.examples)
        loss = loss_of(self.original.task, validation, self.before, after)
        stage = Stage(
            made, pace(self.original, made, validation.examples, self.aim == "joules"), stored_with_backbone(made)
        )
        kept, verdict = self._verdict(compression.EXACT, loss, stage)
        self.tried.append(RungTried(label, verdict, kept, compression.EXACT, loss, stage, facts, seconds))
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)

    def _verdict(self, exact: bool, loss: ScoreLoss, stage: Stage) -> tuple[bool, str]:
        if exact:
            slower = self.aim != "bytes" and stage.pace.ratio < NO_SLOWER * self.stage.pace.ratio
            worse = slower or stage.bytes > NO_LARGER * self.stage.bytes
            return (False, "slower or larger") if worse else (True, "kept: no answer changes")
        gain = stage.value(self.aim) / self.stage.value(self.aim)
        if gain < (1 / FEWER if self.aim == "bytes" else FASTER):
            return False, "no gain"
        if loss.within(self.allowed):
            return True, "kept"
        return False, "loss too large" if loss.mean > self.allowed else "loss not shown to be small"


def _same(rung: str, other: str) -> bool:
    """Return whether two rungs are the same compression, with any settings."""
    return rung.partition(":")[0] == other.partition(":")[0]
