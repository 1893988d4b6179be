"""The search of a comparison: baselines first, then the run that is worth most, until none is worth its time.

Methods without a trained network run first, each once. Every further run is the one with the largest expected gain of
the best choice per second (`decision/next_run.py`); pending runs count as if they came out as expected, so that no core
idles, not even while the last baseline is under way. When no run is worth its time, the chosen method runs with enough
seeds to show its spread, and so do the cheap methods, which cost next to nothing; if that changes the choice, the
search continues. No test row is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from graftwork.compare.grid import Grid, MethodRuns, Runner, RunProgress
from graftwork.compare.run_times import Pace
from graftwork.compare.statistics import FEWEST_RUNS
from graftwork.compare.workers import RunOrder, one_by_one
from graftwork.decision.choice import WORTH, choose
from graftwork.decision.next_run import LEAST_GAIN
from graftwork.decision.traits import FLOOR, FROZEN, SIMPLE, TUNED, Arm
from graftwork.machine.thread_count import limited_to
from graftwork.run.sessions import Sessions

CHEAP = 0.1  # share of the chosen method's time below which another method gets as many seeds
NEXT_TO_NOTHING = 1.0  # seconds below which any method gets as many seeds
ROUNDS = 3  # rounds of search and confirmation, at most
LEAST_SHARE = 0.06  # share of `worth` that a run must be expected to gain, however short it is
STARTING = 5.0  # seconds until the worker processes are ready
LONG_WAIT = 300.0  # seconds of a search from which on long texts are advised to be read in part
TRIED = 4  # methods that train the network and are run, as a rule, before the choice is settled (benchmarks/decision)


@dataclass(frozen=True)
class Outlook:
    """The expected time of a search."""

    first_seconds: float  # until the baselines have run
    likely_seconds: float  # of the whole search, as estimated
    most_seconds: float  # with every method and every seed
    runs: int  # runs, at most
    advice: str = ""  # how to wait for less, if it is long


class Search:
    """The search of one comparison."""

    def __init__(
        self, runner: Runner, seeds: int, worth: float, told: RunProgress, ended: Callable[[MethodRuns], None]
    ):
        self.runner, self.seeds, self.worth, self.told, self.ended = runner, seeds, worth, told, ended
        self.standing, self.session = runner.standing, runner.session
        self.at_once = runner.session.runs_at_once
        self.entries = {entry.arm: entry for entry in runner.entries if entry.candidate}
        self.beside = [entry for entry in runner.entries if not entry.candidate]  # controls, which are never chosen
        self.pace = Pace(runner)

    def run(self) -> Grid:
        """Execute runs until none is worth its time."""
        simple = [self.runner.order(entry, 0) for arm, entry in self.entries.items() if arm.sort in (FLOOR, SIMPLE)]
        with limited_to(self.session.numerics["threads"]):  # as in a worker; the other cores start the workers now
            self.runner.execute(simple, self.told, self.ended, partial(one_by_one, Sessions(self.session)))
        orders = [self.runner.order(entry, 0) for arm, entry in self.entries.items() if arm.sort == FROZEN]
        for _ in range(ROUNDS):
            self._while_worth_it(orders)
            if not self._confirm():
                break
            orders = []
        lonely = [entry for entry in self.beside if not entry.runs]  # without runs, if no method could be chosen
        seeds = range(min(self.seeds, FEWEST_RUNS))
        orders = [self.runner.order(entry, seed) for seed in seeds for entry in lonely]
        self.runner.execute(orders, self.told, self.ended)
        return self.runner.grid()

    def outlook(self) -> Outlook:
        """Estimate the time of the whole search, at any time; stored runs of earlier comparisons cost nothing."""
        seconds = {arm: self.seconds(arm) for arm, entry in self.entries.items() if not self.pace.left_before(entry)}
        tuned = [taken for arm, taken in seconds.items() if arm.sort == TUNED]
        first = STARTING * (self.at_once > 1) + sum(taken for arm, taken in seconds.items() if arm.sort != TUNED)
        confirming = min(self.seeds, FEWEST_RUNS) - 1  # further runs of the chosen method
        likely = first + fmean(tuned or [0.0]) * (min(TRIED, len(tuned)) + confirming)
        most = (sum(seconds.values()) + sum(map(self.pace.seconds, self.beside))) * self.seeds
        runs, likely = self.seeds * len(self.runner.entries), min(likely, most) / self.at_once
        advice = self.runner.session.shorter_reading() if likely > LONG_WAIT else ""
        return Outlook(first, likely, most / self.at_once, runs, advice)

    def seconds(self, arm: Arm) -> float:
        """Estimate the seconds of one more run of a method."""
        return self.pace.seconds(self.entries[arm])

    def seconds_left(self) -> float:
        """Estimate the seconds of all remaining runs, summed, if every run ends with the expected result.

        Runs that have begun count in full.
        """
        if not any(self.standing.begun[arm] for arm in self.standing.begun if arm.sort == TUNED):
            spent = sum(run.spent.wall_seconds for run in self.runner.done.values())
            return max(0.0, self.outlook().likely_seconds * self.at_once - spent)
        begun = dict(self.standing.begun)
        left = sum(self._on_its_way(arm) * self.seconds(arm) for arm in self._open())
        try:
            while found := self._next():
                stored = not begun[found] and self.pace.left_before(self.entries[found])
                left += 0.0 if stored else self.seconds(found)
                self.standing.begin(found)
            there = self.standing.expected
            chosen = choose(there, self.standing.prices, self.worth).chosen if there.ran else None
            wanted, again = self._wanted(chosen) if chosen else (0, [])
            missing = {arm: max(0, wanted - self.standing.begun[arm]) for arm in again}
            left += sum(missing[arm] * self.seconds(arm) for arm in again)
            return left + sum(max(0, wanted - len(entry.runs)) * self.pace.seconds(entry) for entry in self.beside)
        finally:
            self.standing.begun.update(begun)

    def _open(self) -> list[Arm]:
        return [arm for arm in self.entries if arm in self.standing.arms]

    def _while_worth_it(self, orders: list[RunOrder]) -> None:
        """Execute these orders and, once one has ended, as many further runs as are worth their time."""

        def go_on(entry: MethodRuns | None = None) -> None:
            if entry is not None:
                self.ended(entry)
            while sum(self._on_its_way(arm) for arm in self._open()) < self.at_once:
                found = self._next()
                if found is None:
                    return
                orders.append(self.runner.order(self.entries[found], self.standing.begun[found]))

        if not orders:
            go_on()
        self.runner.execute(orders, self.told, go_on)

    def _on_its_way(self, arm: Arm) -> int:
        return self.standing.begun[arm] - len(self.entries[arm].runs)

    def _next(self) -> Arm | None:
        seconds = {arm: self.seconds(arm) for arm in self._open()}
        if not self.standing.run_scores:  # no baseline fits, or none succeeded
            fresh = [arm for arm in seconds if not self.standing.begun[arm]]
            return min(fresh, key=lambda arm: seconds[arm], default=None)
        least = max(LEAST_GAIN, LEAST_SHARE * min(self.worth, WORTH))
        found = self.standing.next_run(seconds, self.seeds, self.worth, sum(seconds.values()), least=least)
        return found[0] if found else None

    def _confirm(self) -> bool:
        """Run the chosen method and cheap ones with enough seeds for a spread; return whether the choice changed."""
        if not self.standing.run_scores:
            return False
        chosen = self.standing.choice(self.worth).chosen
        wanted, again = self._wanted(chosen)
        orders = [
            self.runner.order(self.entries[arm], seed)
            for seed in range(wanted)
            for arm in again
            if seed >= len(self.entries[arm].runs)
        ]
        orders += [self.runner.order(entry, seed) for entry in self.beside for seed in range(len(entry.runs), wanted)]
        self.runner.execute(orders, self.told, self.ended)
        return bool(orders) and (not self.standing.run_scores or self.standing.choice(self.worth).chosen != chosen)

    def _wanted(self, chosen: Arm) -> tuple[int, list[Arm]]:
        """Return the number of runs that show a spread, and the methods that get them: the chosen and cheap ones."""
        limit = max(NEXT_TO_NOTHING, CHEAP * self.seconds(chosen))
        again = [arm for arm in self._open() if arm == chosen or (self.entries[arm].runs and self.seconds(arm) < limit)]
        return min(self.seeds, max(FEWEST_RUNS, len(self.entries[chosen].runs))), again
