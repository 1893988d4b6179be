"""A comparison that answers early: baselines first, then the run that is worth most, until none is worth its time.

Methods without a trained network run first, each once. From then on every run is the one by which the best choice is
expected to gain most for its time (`decision/next_run.py`); runs on their way count as if they came out as expected, so
that no core idles. When nothing is worth its time, the chosen method runs with as many seeds as show its spread, and so
do the baselines, which cost next to nothing; if that changes the choice, the search goes on. No test row is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from graftwork.compare.grid import Grid, MethodRuns, Runner, Told
from graftwork.compare.run_times import Pace
from graftwork.compare.statistics import FEWEST_RUNS
from graftwork.compare.workers import RunOrder, one_by_one
from graftwork.decision.traits import FLOOR, FROZEN, SIMPLE, TUNED, Arm
from graftwork.run.sessions import Sessions

CHEAP = 0.1  # of the chosen method's time: what takes less gets as many seeds
NEXT_TO_NOTHING = 1.0  # seconds; whatever takes less does too
ROUNDS = 3  # how often the choice may change while its seeds are added
STARTING = 5.0  # seconds until the processes that execute runs are ready


@dataclass(frozen=True)
class Outlook:
    """What a search expects of its time."""

    first_seconds: float  # until the baselines have answered
    likely_seconds: float  # of the whole, as far as is known
    most_seconds: float  # with every method and every seed
    runs: int  # at most


class Search:
    """One comparison on its way."""

    def __init__(self, runner: Runner, seeds: int, worth: float, told: Told, ended: Callable[[MethodRuns], None]):
        self.runner, self.seeds, self.worth, self.told, self.ended = runner, seeds, worth, told, ended
        self.standing, self.session = runner.standing, runner.session
        self.at_once = runner.session.runs_at_once
        self.entries = {entry.arm: entry for entry in runner.entries if entry.candidate}
        self.beside = [entry for entry in runner.entries if not entry.candidate]
        self.pace = Pace(runner)

    def run(self) -> Grid:
        """Until nothing more is worth its time."""
        self._first()
        for _ in range(ROUNDS):
            self._while_worth_it()
            if not self._confirm():
                break
        lonely = [entry for entry in self.beside if not entry.runs]  # where nothing could be chosen beside them
        seeds = range(min(self.seeds, FEWEST_RUNS))
        orders = [self.runner.order(entry, seed) for seed in seeds for entry in lonely]
        self.runner.execute(orders, self.told, self.ended)
        return self.runner.grid()

    def outlook(self) -> Outlook:
        """Before anything has run, or at any time after; what an earlier comparison left costs nothing."""
        seconds = {arm: self.seconds(arm) for arm, entry in self.entries.items() if not self.pace.left_before(entry)}
        tuned = sorted(taken for arm, taken in seconds.items() if arm.sort == TUNED)
        first = STARTING * (self.at_once > 1) + sum(taken for arm, taken in seconds.items() if arm.sort != TUNED)
        likely = first + (tuned[0] + 2 * tuned[len(tuned) // 2] + tuned[-1] if tuned else 0.0)
        most = (sum(seconds.values()) + sum(map(self.pace.seconds, self.beside))) * self.seeds
        runs = self.seeds * len(self.runner.entries)
        return Outlook(first, min(likely, most) / self.at_once, most / self.at_once, runs)

    def seconds(self, arm: Arm) -> float:
        """That one more run of a method will take, as far as is known."""
        return self.pace.seconds(self.entries[arm])

    def seconds_left(self) -> float:
        """Until the answer, if the runs on their way change nothing that is expected now."""
        if not any(entry.runs for arm, entry in self.entries.items() if arm.sort == TUNED):
            spent = sum(run.spent.wall_seconds for run in self.runner.done.values())
            return max(0.0, self.outlook().likely_seconds - spent / self.at_once)
        running = sum(self._on_its_way(arm) * self.seconds(arm) for arm in self._open())
        if not self.standing.looks:
            return running / self.at_once
        chosen = self.standing.choice(self.worth).chosen
        missing = max(0, min(FEWEST_RUNS, self.seeds) - self.standing.begun[chosen])
        return (running + missing * self.seconds(chosen)) / self.at_once

    def _open(self) -> list[Arm]:
        return [arm for arm in self.entries if arm in self.standing.arms]

    def _first(self) -> None:
        """Run the baselines: those without a backbone in this process, those on a frozen one by the crew."""
        for sorts, crew in (((FLOOR, SIMPLE), partial(one_by_one, Sessions(self.session))), ((FROZEN,), None)):
            orders = [self.runner.order(entry, 0) for arm, entry in self.entries.items() if arm.sort in sorts]
            self.runner.execute(orders, self.told, self.ended, crew)

    def _while_worth_it(self) -> None:
        orders: list[RunOrder] = []

        def go_on(entry: MethodRuns | None = None) -> None:
            if entry is not None:
                self.ended(entry)
            while sum(self._on_its_way(arm) for arm in self._open()) < self.at_once:
                found = self._next()
                if found is None:
                    return
                orders.append(self.runner.order(self.entries[found], self.standing.begun[found]))

        go_on()
        self.runner.execute(orders, self.told, go_on)

    def _on_its_way(self, arm: Arm) -> int:
        return self.standing.begun[arm] - len(self.entries[arm].runs)

    def _next(self) -> Arm | None:
        seconds = {arm: self.seconds(arm) for arm in self._open()}
        if not self.standing.looks:  # nothing without a trained network fits, or went through
            fresh = [arm for arm in seconds if not self.standing.begun[arm]]
            return min(fresh, key=lambda arm: seconds[arm], default=None)
        found = self.standing.next_run(seconds, self.seeds, self.worth, sum(seconds.values()))
        return found[0] if found else None

    def _confirm(self) -> bool:
        """Run the chosen method, and cheap ones, with the seeds that show a spread; whether that changed the choice."""
        if not self.standing.looks:
            return False
        chosen = self.standing.choice(self.worth).chosen
        wanted = min(self.seeds, max(FEWEST_RUNS, len(self.entries[chosen].runs)))
        limit = max(NEXT_TO_NOTHING, CHEAP * self.seconds(chosen))
        again = [arm for arm in self._open() if arm == chosen or (self.entries[arm].runs and self.seconds(arm) < limit)]
        orders = [
            self.runner.order(self.entries[arm], seed)
            for seed in range(wanted)
            for arm in again
            if seed >= len(self.entries[arm].runs)
        ]
        orders += [self.runner.order(entry, seed) for entry in self.beside for seed in range(len(entry.runs), wanted)]
        self.runner.execute(orders, self.told, self.ended)
        return bool(orders) and (not self.standing.looks or self.standing.choice(self.worth).chosen != chosen)
