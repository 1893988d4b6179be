"""Estimates of a comparison's run times, from its runs, from earlier runs, or from FLOPs; and of the remaining time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from graftwork.budget.forecaster import Forecaster
from graftwork.compare.grid import MethodRuns, Runner
from graftwork.core.run import RunResult
from graftwork.decision.traits import FROZEN, TUNED
from graftwork.machine.thread_count import limited_to

RUN_TO_PASS = 1.3  # seconds per FLOP, run to frozen pass; used until a run with the backbone is timed
BEFORE_THE_BACKBONE = 0.2  # seconds of a run without a backbone
FIT_SHARE = 0.85  # share of a run's time in its fit, which reports progress; the rest predicts test and saves
MEASURED_FROM = 0.1  # progress of a run (0 … 1) from which its own speed replaces the forecast
OVERDUE = 0.05  # minimum remaining time of a run past its forecast, as a share of its elapsed time


class Pace:
    """The run times of one comparison."""

    def __init__(self, runner: Runner):
        self.runner = runner
        self._operations: dict[str, float] = {}
        self._before: dict[str, RunResult | None] = {}  # the stored run of the first seed, if any

    def seconds(self, entry: MethodRuns) -> float:
        """Estimate the seconds of one more run of a method."""
        taken = [run.spent.wall_seconds for run in self._timed_runs(entry) if run.status == "ok"]
        if taken:
            return statistics.median(taken)
        operations = self._operations_of(entry)
        return BEFORE_THE_BACKBONE + (operations * self._rate() if operations else 0.0)

    def left_before(self, entry: MethodRuns) -> RunResult | None:
        """Return the run of the first seed that is stored from an earlier comparison and costs nothing now, or None."""
        label, session = entry.item.label, self.runner.session
        if label not in self._before:
            self._before[label] = session.store.find(session.spec(entry.item, self.runner.recipe, 0).id)
        return self._before[label]

    def _timed_runs(self, entry: MethodRuns) -> Sequence[RunResult]:
        """Return the runs of a method in this comparison, else the one stored from an earlier comparison."""
        before = None if entry.runs else self.left_before(entry)
        return entry.runs if before is None else [before]

    def _rate(self) -> float:
        """Return the seconds per FLOP of the finished runs that tune the network, else of those with a frozen one.

        Before the first, the backbone is timed on a few rows, or a network that writes on a few texts.
        """
        for sort in (TUNED, FROZEN):
            entries = [entry for entry in self.runner.entries if entry.arm.sort == sort and entry.runs]
            runs = [(entry, run) for entry in entries for run in entry.runs if run.status == "ok"]
            operations = sum(self._operations_of(entry) for entry, _ in runs)
            if operations:
                return sum((run.spent + run.shared).wall_seconds for _, run in runs) / operations
        return self._answering[1]

    @cached_property
    def _answering(self) -> tuple[float, float]:
        """The FLOPs of a run's predictions, and the seconds per FLOP. Decoding takes far longer than its FLOPs suggest,
        so texts count as the FLOPs that take as long."""
        writing = self._forecaster.writing
        with limited_to(self.runner.session.numerics["threads"]):
            if writing is None:
                return self._forecaster.answering_flops, RUN_TO_PASS * self._forecaster.seconds_per_flop
            return writing.of_run(writing.untrained) / writing.seconds_per_flop, writing.seconds_per_flop

    def _operations_of(self, entry: MethodRuns) -> float:
        """Estimate the FLOPs of a run; 0 if they can't be counted in advance."""
        label = entry.item.label
        if label not in self._operations:
            try:
                answering = self._answering[0] if entry.item.method.uses_backbone else 0.0
                self._operations[label] = self._forecaster.operations(entry.item) + answering
            except Exception:  # a method that can't be built fails as a run, which reports it
                self._operations[label] = 0.0
        return self._operations[label]

    @cached_property
    def _forecaster(self) -> Forecaster:
        one_thread = self.runner.session.numerics["threads"] == 1  # processor time ignores other load
        return Forecaster(
            self.runner.session, self.runner.recipe, 0, time.process_time if one_thread else time.perf_counter
        )


@dataclass
class _Running:
    """A run under way."""

    forecast: float  # seconds
    began: float  # time of its start, on the countdown's clock
    done: float = 0.0  # fraction of its fit

    def left(self, now: float) -> float:
        """Return the remaining seconds: by its progress from `MEASURED_FROM` on, before that by the forecast."""
        gone = now - self.began
        whole = gone / (FIT_SHARE * self.done) if self.done >= MEASURED_FROM else self.forecast
        return max(whole - gone, OVERDUE * gone)


class Countdown:
    """The elapsed and the remaining time of a comparison with concurrent runs.

    The remaining time is that of the running runs, each by its own progress, and of the runs to come.
    """

    def __init__(self, at_once: int, clock: Callable[[], float] = time.monotonic):
        self._at_once, self._clock = at_once, clock
        self._began = clock()
        self._running: dict[tuple[str, int], _Running] = {}  # (method, seed)
        self._to_come = 0.0  # seconds of the runs to come, summed

    def plan(self, seconds: float) -> None:
        """Set the remaining seconds, summed over runs; `seconds` includes running runs with their whole forecast."""
        self._to_come = max(0.0, seconds - sum(run.forecast for run in self._running.values()))

    def hear(self, run: tuple[str, int], done: float, forecast: Callable[[], float]) -> None:
        """Record the progress of a run; `forecast` is called for the run's seconds when it begins."""
        if run not in self._running:
            self._running[run] = _Running(forecast(), self._clock())
            self._to_come = max(0.0, self._to_come - self._running[run].forecast)
        self._running[run].done = done

    def end(self, run: tuple[str, int]) -> None:
        """Record the end of a run."""
        self._running.pop(run, None)

    def read(self) -> tuple[float, float]:
        """Return the elapsed and the remaining seconds."""
        now = self._clock()
        left = [run.left(now) for run in self._running.values()]
        return now - self._began, max(max(left, default=0.0), (sum(left) + self._to_come) / self._at_once)
