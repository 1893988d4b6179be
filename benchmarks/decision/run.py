"""The loss of a choice, replayed on finished boards: `python run.py`.

Every task's choice is made by a prior that was not fitted on this task's data set, under any name or draw.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from calibration_plot import write_plot
from refit import records
from replays import Replay, keeps_an_epoch, replays
from simulated import coverage

from graftwork.budget.averaging import gains_per_second
from graftwork.budget.climber import kept_gain
from graftwork.budget.forecast import LEAST_PART, PARTS
from graftwork.compare.search import CHEAP, LEAST_SHARE, NEXT_TO_NOTHING, ROUNDS
from graftwork.decision.choice import WORTH
from graftwork.decision.earlier_boards import Experience, shipped_prior
from graftwork.decision.next_run import LEAST_GAIN
from graftwork.decision.prior import Prior, Sizes
from graftwork.decision.standing import Standing
from graftwork.decision.traits import FLOOR, FROZEN, SIMPLE, TUNED, Arm
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.run.score_interval import Evidence

HERE = Path(__file__).parent.absolute()
RESULT = HERE / "results" / "decision.json"
ORDERS = 8  # random orders of the seeds per task
SEEDS = 3  # per method, at most
LEAST_SECONDS = 0.05
EXHAUSTIVE_SEEDS = 5
FULL, DEEP = "full", "top_layers:k=3"
AVERAGED = (FULL, "top_layers")  # methods whose runs `train --budget` averages; what averages gain is not replayed


@dataclass(frozen=True)
class Outcome:
    """The choice of one rule on one task."""

    task: str
    chosen: str
    loss: float  # the best method's mean test score minus that of the chosen one, a fraction
    price: float  # training time of the chosen method, relative to `full`
    spent: float  # training time of the search, relative to `full`
    shortfall: tuple[float, float, float] | None = None  # as stated: expected value and 90 % interval


def source_of(name: str) -> str:
    """Return the data set behind a board, whatever the draw: `small/cr_400` and `first_board/cr` are `cr`."""
    return re.sub(r"_\d+$", "", name.rpartition("/")[2]).lower().replace("-", "")


def priors(tasks: Sequence[Replay], sizes: Sizes) -> dict[str, Prior]:
    """Return for each task the prior fitted without its data set."""
    everything = records()
    found = {}
    for task in tasks:
        own = source_of(task.name)
        others = tuple(record for record in everything if source_of(record.name) != own)
        found[task.name] = Prior(sizes, Experience(others))
    return found


def search(
    task: Replay, prior: Prior, order: int, worth: float, budget: float = math.inf, unflattered: bool = True
) -> Outcome:
    """Choose as `compare` does: baselines, then the most valuable runs, then those that show the choice's spread.

    With a `budget`, a multiple of a run of `full`, as `train --budget` does: until it is spent, and nothing more; a
    first run for which too little is left is cut to a part of its steps. With `unflattered`, what keeping the best
    epoch adds to a score is taken off.
    """
    random = np.random.default_rng(order)
    seconds = {arm: max(LEAST_SECONDS, seen.seconds) for arm, seen in task.arms.items()}
    parts = dict.fromkeys(seconds, 1.0)
    turns = {arm: random.permutation(len(seen.validation)) for arm, seen in task.arms.items()}
    standing = Standing(list(task.arms), task.record.traits, task.rows, prior)
    full, spent = seconds_of(task, seconds, FULL), 0.0
    whole, most, free = sum(seconds.values()), _most(task), math.isinf(budget)

    def make(arm: Arm) -> None:
        nonlocal spent
        seed = int(turns[arm][standing.begun[arm]])
        standing.begin(arm)
        lost = (1 - kept_gain(parts[arm])) * task.gain(arm, of_validation=True)
        shown = Evidence(task.arms[arm].validation[seed] - lost, task.draws(arm, seed, standing.spread) - lost)
        standing.add(arm, shown, parts[arm] * seconds[arm], unflattered and keeps_an_epoch(arm, task.record.traits))
        spent += parts[arm] * seconds[arm]

    def cut() -> None:
        """Cut the first run of each method to what the budget still pays for, at least to the smallest part."""
        for arm in parts:
            if not free and arm.sort == TUNED and not standing.begun[arm]:
                afforded = math.floor(PARTS * max(0.0, budget * full - spent) / seconds[arm]) / PARTS
                parts[arm] = min(1.0, max(LEAST_PART / PARTS, afforded))

    def asked() -> tuple[dict[Arm, float], int, float, float, float, dict[Arm, float], dict[Arm, float]]:
        cut()
        needed = {arm: parts[arm] * taken for arm, taken in seconds.items()}
        alike = {} if free else {arm: taken for arm, taken in needed.items() if arm.name in AVERAGED}
        kept, again = {arm: kept_gain(part) for arm, part in parts.items()}, gains_per_second(standing, alike)
        return needed, most, worth, whole, budget * full - spent, kept, again

    for sort in (FLOOR, SIMPLE, FROZEN):
        for arm in [arm for arm in task.arms if arm.sort == sort]:
            make(arm)
    least = max(LEAST_GAIN, LEAST_SHARE * min(worth, WORTH)) if free else LEAST_GAIN
    for _ in range(ROUNDS if free else 1):
        while found := standing.next_run(*asked(), least=least):
            make(found[0])
        before = standing.choice(worth).chosen
        limit = max(NEXT_TO_NOTHING, CHEAP * seconds[before])
        again = [arm for arm in task.arms if arm == before or (standing.begun[arm] and seconds[arm] < limit)]
        for arm in again if free else ():
            for _ in range(standing.begun[arm], most):
                make(arm)
        if standing.choice(worth).chosen == before:
            break
    chosen = standing.choice(worth).chosen
    return Outcome(
        task.name,
        chosen.label,
        task.best - task.arms[chosen].test + (1 - kept_gain(parts[chosen])) * task.gain(chosen),
        parts[chosen] * seconds[chosen] / full,
        spent / full,
        standing.posterior.shortfall(chosen),
    )


def decided(known: Mapping[str, Prior], worth: float, task: Replay, order: int, budget: float = math.inf) -> Outcome:
    """Run `search` with the task's own prior."""
    return search(task, known[task.name], order, worth, budget)


def _most(task: Replay) -> int:
    return min(SEEDS, *(len(seen.validation) for seen in task.arms.values()))


def seconds_of(task: Replay, seconds: Mapping[Arm, float], label: str) -> float:
    """Return the seconds to train a method once; if it is not on the board, those of the most expensive method."""
    return next((taken for arm, taken in seconds.items() if arm.label == label), max(seconds.values()))


def always(label: str) -> Callable[[Replay, int], Outcome]:
    """Return a rule that always chooses the same method; if it is not on the board, another variant of it."""

    def rule(task: Replay, order: int) -> Outcome:
        seconds = {arm: max(LEAST_SECONDS, seen.seconds) for arm, seen in task.arms.items()}
        full = seconds_of(task, seconds, FULL)
        arm = next((arm for arm in task.arms if arm.label == label), None) or next(
            arm for arm in task.arms if arm.name == label.partition(":")[0]
        )
        return Outcome(task.name, arm.label, task.best - task.arms[arm].test, seconds[arm] / full, seconds[arm] / full)

    return rule


def best_on_validation(task: Replay, order: int) -> Outcome:
    """Run every method once and choose the highest validation score."""
    random = np.random.default_rng(order)
    seconds = {arm: max(LEAST_SECONDS, seen.seconds) for arm, seen in task.arms.items()}
    full = seconds_of(task, seconds, FULL)
    shown = {arm: seen.validation[random.integers(len(seen.validation))] for arm, seen in task.arms.items()}
    arm = max(shown, key=lambda one: shown[one])
    spent = sum(seconds.values()) / full
    return Outcome(task.name, arm.label, task.best - task.arms[arm].test, seconds[arm] / full, spent)


def exhaustive(task: Replay, order: int) -> Outcome:
    """Run every method with five seeds, as `compare --exhaustive` does; choose the highest mean validation score."""
    seconds = {arm: max(LEAST_SECONDS, seen.seconds) for arm, seen in task.arms.items()}
    full = seconds_of(task, seconds, FULL)
    arm = max(task.arms, key=lambda one: statistics.fmean(task.arms[one].validation))
    spent = EXHAUSTIVE_SEEDS * sum(seconds.values()) / full
    return Outcome(task.name, arm.label, task.best - task.arms[arm].test, seconds[arm] / full, spent)


def not_beaten(task: Replay, order: int) -> Outcome:
    """Choose by the former rule: the cheapest method not told from the best on test and not shown to be beaten.

    That is the majority class where no method is shown to beat it.
    """
    seconds = {arm.label: max(LEAST_SECONDS, seen.seconds) for arm, seen in task.arms.items()}
    means = {arm.label: seen.test for arm, seen in task.arms.items()}
    best = max(means, key=lambda label: means[label])
    pairs = [pair for pair in task.differences if {pair["a"], pair["b"]} <= set(means)]
    told = [pair for pair in pairs if pair["verdict"] != "cannot tell"]
    beaten = {pair["b"] if pair["verdict"] == "better" else pair["a"] for pair in told}
    equal = {best} | {
        pair["b"] if pair["a"] == best else pair["a"]
        for pair in pairs
        if best in (pair["a"], pair["b"]) and pair["verdict"] == "cannot tell"
    }
    chosen = min(equal - (beaten - {best}), key=lambda label: seconds[label])
    full = seconds.get(FULL, max(seconds.values()))
    spent = SEEDS * sum(seconds.values()) / full
    return Outcome(task.name, chosen, task.best - means[chosen], seconds[chosen] / full, spent)


def summed(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Summarise over tasks; each task counts once, whatever its number of orders."""
    by: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by.setdefault(outcome.task, []).append(outcome)
    losses = {task: statistics.fmean(one.loss for one in of) for task, of in by.items()}
    prices = [statistics.fmean(math.log(one.price) for one in of) for of in by.values()]
    stated = [one.shortfall[0] for one in outcomes if one.shortfall]
    error = statistics.stdev(losses.values()) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return {
        "tasks": len(losses),
        "mean_loss": statistics.fmean(losses.values()),
        "standard_error": error,
        "largest_loss": max(losses.values()),
        "on": max(losses, key=lambda task: losses[task]),
        "price": math.exp(statistics.fmean(prices)),
        "spent": statistics.fmean(one.spent for one in outcomes),
        "spent_by_task": {task: statistics.fmean(one.spent for one in of) for task, of in by.items()},
        "stated": statistics.fmean(stated) if stated else None,
        "losses": losses,
        "chosen": {task: sorted({one.chosen for one in of}) for task, of in by.items()},
    }


def main() -> None:
    """Replay all rules on all boards, the budgets, and the simulated boards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--simulated", type=int, default=2000)
    chosen = parser.parse_args()
    if chosen.simulated < 1:
        parser.error("--simulated must be 1 or more")
    tasks, sizes = replays(), Sizes.read(shipped_prior()[0])
    known = priors(tasks, sizes)
    rules: dict[str, Callable[[Replay, int], Outcome]] = {
        f"graftwork, --worth {100 * worth:g}": partial(decided, known, worth) for worth in (0.0, 0.005, 0.02)
    }
    rules |= {
        f"graftwork, {times} x the time of full": partial(decided, known, 0.0, budget=times) for times in (1, 2, 5)
    }
    rules |= {f"always {label}": always(label) for label in (FULL, DEEP, "linear_probe")}
    rules |= {"best on validation": best_on_validation, "every method five times": exhaustive}
    found: dict[str, Any] = {}
    for group, of_group in (("whole boards", "many_tasks glue"), ("small draws", "small")):
        listed = [task for task in tasks if task.name.partition("/")[0] in of_group.split()]
        if not listed:
            continue
        own = rules | ({"cheapest that nothing is shown to beat": not_beaten} if group == "whole boards" else {})
        found[group] = {}
        for name, rule in own.items():
            of = summed([rule(task, order) for task in listed for order in range(ORDERS)])
            found[group][name] = of
            told = (
                f"{100 * of['mean_loss']:.2f} points, at most {100 * of['largest_loss']:.1f}, price {of['price']:.2f}"
            )
            print(f"{group}: {name}: {told}, spent {of['spent']:.1f}", flush=True)
    simulations = coverage(tasks, known, sizes, chosen.simulated)
    content = {"rules": found, "simulated": simulations, "environment": environment(), "orders": ORDERS}
    write_json(chosen.out, content)
    write_plot(content, chosen.out.parent / "calibration.svg")


if __name__ == "__main__":
    main()
