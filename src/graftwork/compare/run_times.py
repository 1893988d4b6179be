"""How long the runs of a comparison take: as they took, as they took before, or by their operations."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cached_property

from graftwork.budget.forecast import Forecaster
from graftwork.compare.grid import MethodRuns, Runner
from graftwork.core.run import RunResult
from graftwork.decision.traits import FROZEN, TUNED

SECONDS_PER_FLOP = 2e-11  # until a pass of the backbone was timed
BEFORE_THE_BACKBONE = 0.2  # seconds of a run without one


class Pace:
    """Of one comparison. Operations are counted for those methods alone of which no run is there."""

    def __init__(self, runner: Runner):
        self.runner = runner
        self._operations: dict[str, float] = {}
        self._before: dict[str, RunResult | None] = {}  # the run of the first seed, where it was made earlier

    def seconds(self, entry: MethodRuns) -> float:
        """That one more run of a method will take."""
        taken = [run.spent.wall_seconds for run in self._known(entry) if run.status == "ok"]
        if taken:
            return statistics.median(taken)
        return BEFORE_THE_BACKBONE + self._operations_of(entry) * self._rate()

    def left_before(self, entry: MethodRuns) -> RunResult | None:
        """The run of the first seed that an earlier comparison left, which costs nothing now."""
        label, session = entry.item.label, self.runner.session
        if label not in self._before:
            self._before[label] = session.store.find(session.spec(entry.item, self.runner.recipe, 0).id)
        return self._before[label]

    def _known(self, entry: MethodRuns) -> Sequence[RunResult]:
        """The runs of a method that this comparison made, else the one that an earlier one left."""
        before = None if entry.runs else self.left_before(entry)
        return entry.runs if before is None else [before]

    def _rate(self) -> float:
        """Seconds per operation, of the runs that there are: those that change the network, else those that read it."""
        for sort in (TUNED, FROZEN):
            entries = [entry for entry in self.runner.entries if entry.arm.sort == sort and entry.runs]
            runs = [(entry, run) for entry in entries for run in entry.runs if run.status == "ok"]
            operations = sum(self._operations_of(entry) for entry, _ in runs)
            if operations:
                return sum((run.spent + run.shared).wall_seconds for _, run in runs) / operations
        return SECONDS_PER_FLOP

    def _operations_of(self, entry: MethodRuns) -> float:
        """Roughly the floating-point operations of a run; 0 where they can't be counted before it runs."""
        label = entry.item.label
        if label not in self._operations:
            try:
                self._operations[label] = self._forecaster.operations(entry.item)
            except Exception:  # what can't be built fails as a run, and is told then
                self._operations[label] = 0.0
        return self._operations[label]

    @cached_property
    def _forecaster(self) -> Forecaster:
        return Forecaster(self.runner.session, self.runner.recipe, 0)
