"""The leaderboard as data: what stands in `leaderboard.json`, from finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from graftwork.compare.frontier import DEFAULT_COST, frontier, points
from graftwork.compare.statistics import FEWEST_RUNS, Bootstrap, Sample, bootstrap
from graftwork.core.meter import GRADES, Cost
from graftwork.core.metric import Metric
from graftwork.core.run import RunResult

FORMAT = 1
ENOUGH_RUNS = 5  # to show a ranking
HEADLINE_DRAWS = 10_000
OTHER_DRAWS = 1_000  # for the intervals of metrics that decide nothing

Statistics = Mapping[str, NDArray[Any]]  # metric -> (N, K) on the test split


@dataclass(frozen=True)
class RowRuns:
    """A row of the board: one method and all of its runs."""

    method: str
    config: Mapping[str, Any]
    status: str  # "ok" | "failed" | "out_of_memory" | "dropped"
    runs: tuple[tuple[RunResult, Statistics], ...]  # the statistics of a run that isn't "ok" are empty
    trials: tuple[RunResult, ...] = ()  # runs of the race that were cut short, or at a rate that wasn't kept
    dropped: Mapping[str, Any] | None = None  # stage, why, validation, leader, leader_validation, cost

    @property
    def scored(self) -> tuple[tuple[RunResult, Statistics], ...]:
        """The runs that went through and are compared: none of a row that was dropped."""
        if self.status == "dropped":
            return ()
        return tuple((result, stats) for result, stats in self.runs if result.status == "ok")


@dataclass(frozen=True)
class Findings:
    """What the board says beside its rows."""

    data_report: Mapping[str, Any] = field(default_factory=dict)
    search_costs: Mapping[str, Cost] = field(default_factory=dict)  # what the whole comparison really spent
    notes: tuple[str, ...] = ()
    race: Mapping[str, Any] | None = None  # None: every method ran in full
    command: str = ""  # what the user typed
    environment: Mapping[str, Any] = field(default_factory=dict)  # where the board was assembled


def leaderboard(
    task: Mapping[str, Any],
    backbone: Mapping[str, Any] | None,
    rows: Sequence[RowRuns],
    metrics: Mapping[str, Metric],
    findings: Findings = Findings(),
    *,
    draws: int = HEADLINE_DRAWS,
    seed: int = 0,
) -> dict[str, Any]:
    """The content of `leaderboard.json`. `metrics` by name, the headline first.

    Rows come best first, then the dropped ones, then those that failed. Scores are fractions; costs are medians over a
    row's runs of full length.
    Keys are only ever added to this dictionary: it is a file format.
    """
    headline = next(iter(metrics))
    boots = {
        name: _bootstrap(rows, name, metric, draws if name == headline else min(draws, OTHER_DRAWS), seed)
        for name, metric in metrics.items()
    }
    entries = [_entry(row, boots) for row in rows]
    entries.sort(key=lambda entry: _rank(entry, headline))
    _mark_below_majority(entries, headline)
    return {
        "format": FORMAT,
        "task": dict(task),
        "backbone": None if backbone is None else dict(backbone),
        "rows": entries,
        "headline_metric": headline,
        "frontier": frontier(points(entries, headline)),
        "frontier_cost": DEFAULT_COST,
        "differences": _differences(boots[headline], entries, headline),
        "search_costs": {name: asdict(cost) for name, cost in findings.search_costs.items()},
        "data_report": dict(findings.data_report),
        "race": None if findings.race is None else dict(findings.race),
        "notes": [*_notes(rows), *findings.notes],
        "statistics": {"draws": draws, "other_draws": min(draws, OTHER_DRAWS), "seed": seed, "level": 0.95},
        "command": findings.command,
        "environment": dict(findings.environment),
    }


def median_costs(results: Sequence[RunResult]) -> dict[str, dict[str, Any]]:
    """Each cost's median over the runs that know it, with the worst grade among them."""
    names = dict.fromkeys(name for result in results for name in result.costs)
    medians = {}
    for name in names:
        costs = [result.costs[name] for result in results if name in result.costs]
        known = [cost for cost in costs if cost.value is not None] or costs
        values = [cost.value for cost in known if cost.value is not None]
        grade = max((cost.grade for cost in known), key=_grade_rank)
        medians[name] = {
            "value": statistics.median(values) if values else None,
            "unit": known[0].unit,
            "grade": grade,
        }
    return medians


def _grade_rank(grade: str) -> int:
    return GRADES.index(grade) if grade in GRADES else len(GRADES)


def _bootstrap(rows: Sequence[RowRuns], name: str, metric: Metric, draws: int, seed: int) -> Bootstrap:
    samples = [
        Sample(row.method, tuple(stats[name] for _, stats in row.scored))
        for row in rows
        if row.status == "ok" and row.scored
    ]
    return bootstrap(samples, metric, draws=draws, seed=seed) if samples else Bootstrap({})


def _entry(row: RowRuns, boots: Mapping[str, Bootstrap]) -> dict[str, Any]:
    """One row of the board. A row that failed has a price and no score; one that was dropped, neither a score nor,
    before its first whole run, a price that could stand beside the others'."""
    results = [result for result, _ in row.runs]
    scored = [result for result, _ in row.scored]
    trials = row.trials if row.status == "dropped" else ()  # of other rows the race tells
    errors = dict.fromkeys(result.error for result in (*results, *trials) if result.error)
    return {
        "method": row.method,
        "config": dict(row.config),
        "status": row.status if scored or row.status != "ok" else "failed",
        "n_seeds": len(scored),
        "n_failed": sum(result.status != "ok" for result in results),
        "scores": {name: asdict(boot.score(row.method)) for name, boot in boots.items() if row.method in boot.rows},
        "costs": median_costs(scored or results),
        "below_majority": False,
        "runs": [result.id for result in (*trials, *results)],
        "errors": list(errors),
        "dropped": None if row.dropped is None else dict(row.dropped),
    }


def _rank(entry: Mapping[str, Any], headline: str) -> tuple[int, float, str]:
    """Best first; dropped ones by validation; failed last; equal scores by name, whatever the input's order."""
    score = entry["scores"].get(headline)
    if entry["dropped"]:
        return 1, -entry["dropped"]["validation"], entry["method"]
    return 2 * (score is None), -score["mean"] if score else 0.0, entry["method"]


def _mark_below_majority(entries: Sequence[dict[str, Any]], headline: str) -> None:
    means = {entry["method"]: entry["scores"][headline]["mean"] for entry in entries if entry["scores"]}
    for entry in entries:
        if "majority" in means and entry["method"] in means:
            entry["below_majority"] = means[entry["method"]] < means["majority"]


def _differences(boot: Bootstrap, entries: Sequence[Mapping[str, Any]], headline: str) -> list[dict[str, Any]]:
    """Every pair of scored rows, the higher mean as `a`."""
    ordered = Bootstrap({entry["method"]: boot.rows[entry["method"]] for entry in entries if entry["scores"]})
    return [{"metric": headline} | asdict(pair) for pair in ordered.differences()]


def _notes(rows: Sequence[RowRuns]) -> list[str]:
    """What a reader must know before trusting the order of the rows."""
    counts = [len(row.scored) for row in rows if row.status == "ok" and row.scored]
    notes = []
    if counts and min(counts) < ENOUGH_RUNS:
        fewest = min(counts)
        runs = "1 run" if fewest == 1 else f"{fewest} runs"
        note = f"not enough runs to rank: {runs} of a method; {ENOUGH_RUNS} show a ranking, 10 support a claim"
        if fewest < FEWEST_RUNS:
            note += f". Under {FEWEST_RUNS} runs the spread over seeds is unknown, so no verdict is given"
        notes.append(note)
    for row in rows:
        lost = len(row.runs) - len(row.scored)
        if row.scored and lost:
            notes.append(f"{row.method}: {lost} of {len(row.runs)} runs did not finish; its scores are of the others")
    return notes
