"""The leaderboard as data: the content of `leaderboard.json`, from finished runs.

A failed run is a result too. A row's scores are over its successful runs, and it states how many failed. Verdicts count
every run; a failed one counts with the predictions of the majority class, which its user would have to fall back to.
Otherwise a method would gain by failing where it would have scored low.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.compare.expected_best import curve
from graftwork.compare.frontier import DEFAULT_COST, frontier, points
from graftwork.compare.majority_floor import MAJORITY, Floor, floor_name
from graftwork.compare.statistics import DECIMALS, FEWEST_RUNS, LEVEL, Bootstrap, RowDifference, RowSample, bootstrap
from graftwork.compare.stochastic_order import almost_stochastic_order
from graftwork.core.kind_settings import HEEDED
from graftwork.core.meter import GRADES, Cost
from graftwork.core.metric import Metric, OfSample, score_of
from graftwork.core.run import RunResult
from graftwork.train.seeds import SOURCES
from graftwork.units import several

FORMAT = 1
SAVED = "saved_cost"  # the metric of tasks with costs
ENOUGH_RUNS = 5  # runs per method needed for a ranking
ENOUGH_ROWS = 20  # test rows below which intervals are rough
HEADLINE_DRAWS = 10_000
SAMPLED_DRAWS = 1_000  # for a headline metric that is recomputed on each draw
OTHER_DRAWS = 1_000  # for the intervals of the other metrics, which decide nothing
SEED = 0  # seed of the draws
ROUNDING = 1e-9  # tolerance of scores in the comparison with the majority class

Statistics = Mapping[str, NDArray[Any]]  # metric -> (N, K) on the test split


@dataclass(frozen=True)
class RowRuns:
    """A row of the board: one method and all of its runs."""

    method: str
    config: Mapping[str, Any]
    status: str  # "ok" | "failed" | "diverged" | "out_of_memory"
    runs: tuple[tuple[RunResult, Statistics], ...]  # statistics are empty unless a run is "ok"

    @property
    def scored(self) -> tuple[tuple[RunResult, Statistics], ...]:
        """The successful runs."""
        return tuple((result, stats) for result, stats in self.runs if result.status == "ok")

    def counted(self, metric: str, floor: Floor) -> tuple[NDArray[Any], ...]:
        """Return the statistics (N, K) of every run of a scored row; failed runs have those of the majority class."""
        return tuple(stats[metric] if result.status == "ok" else floor.test[metric] for result, stats in self.runs)


@dataclass(frozen=True)
class Findings:
    """The parts of a board other than its rows."""

    floor: Floor
    data_report: Mapping[str, Any] = field(default_factory=dict)
    search_costs: Mapping[str, Cost] = field(default_factory=dict)  # real cost of the whole comparison
    notes: tuple[str, ...] = ()
    decision: Mapping[str, Any] | None = None  # `decision_json.content_of`; None if no run succeeded
    command: str = ""  # the user's command line
    environment: Mapping[str, Any] = field(default_factory=dict)  # of the process that assembled the board
    varied: tuple[str, ...] = SOURCES  # sources of variation that differ between seeds; others are as with seed 0
    sources: tuple[str, ...] = SOURCES  # all sources of the methods


def leaderboard(
    task: Mapping[str, Any],
    backbone: Mapping[str, Any] | None,
    rows: Sequence[RowRuns],
    metrics: Mapping[str, Metric],
    findings: Findings,
    *,
    draws: int = HEADLINE_DRAWS,
) -> dict[str, Any]:
    """Return the content of `leaderboard.json`. `metrics` is name -> metric, the headline metric first.

    Rows come best first, then those that failed. Scores are fractions; costs are medians over a row's successful runs,
    or over all of them if none succeeded.
    It is a file format: keys are only ever added.
    """
    headline, floor = next(iter(metrics)), findings.floor
    lowest = score_of(metrics[headline], floor.test[headline])
    draws = min(draws, SAMPLED_DRAWS) if isinstance(metrics[headline], OfSample) else draws
    boots = {
        name: bootstrap_of(
            {row.method: tuple(stats[name] for _, stats in row.scored) for row in rows},
            metric,
            draws if name == headline else min(draws, OTHER_DRAWS),
        )
        for name, metric in metrics.items()
    }
    counted = _counted(rows, boots[headline], metrics[headline], headline, floor, draws)
    entries = [_entry(row, boots, counted, headline, lowest) for row in rows]
    entries.sort(key=_rank)
    return {
        "format": FORMAT,
        "task": dict(task),
        "backbone": None if backbone is None else dict(backbone),
        "rows": entries,
        "headline_metric": headline,
        "frontier": frontier(points(entries, headline)),
        "frontier_cost": DEFAULT_COST,
        "differences": _differences(counted, entries, headline),
        "disagreements": _disagreements(boots, headline, findings.decision["chosen"] if findings.decision else None),
        "majority": lowest,
        "expected_best": _expected_best(rows, headline, floor),
        "search_costs": {name: asdict(cost) for name, cost in findings.search_costs.items()},
        "data_report": dict(findings.data_report),
        "race": None,  # always None: a part of the format
        "decision": None if findings.decision is None else dict(findings.decision),
        "notes": [
            *_notes(rows, entries, floor, task),
            *_note_on_sources(findings.varied, findings.sources),
            *findings.notes,
        ],
        "statistics": {
            "draws": draws,
            "other_draws": min(draws, OTHER_DRAWS),
            "seed": SEED,
            "level": 0.95,
            "varied": list(findings.varied),
        },
        "command": findings.command,
        "environment": dict(findings.environment),
    }


def median_costs(results: Sequence[RunResult]) -> dict[str, dict[str, Any]]:
    """Return each cost's median over the runs that know it, with the worst grade among them."""
    names = dict.fromkeys(name for result in results for name in result.costs)
    medians = {}
    for name in names:
        costs = [result.costs[name] for result in results if name in result.costs]
        known = [cost for cost in costs if cost.value is not None] or costs
        values = [cost.value for cost in known if cost.value is not None]
        grade = max((cost.grade for cost in known), key=_grade_rank)
        medians[name] = {"value": statistics.median(values) if values else None, "unit": known[0].unit, "grade": grade}
    return medians


def _grade_rank(grade: str) -> int:
    return GRADES.index(grade) if grade in GRADES else len(GRADES)


def bootstrap_of(runs: Mapping[str, tuple[NDArray[Any], ...]], metric: Metric, draws: int) -> Bootstrap:
    """Bootstrap the statistics of each method's runs; methods without runs are left out."""
    samples = [RowSample(method, of_method) for method, of_method in runs.items() if of_method]
    return bootstrap(samples, metric, draws=draws, seed=SEED) if samples else Bootstrap({})


def _counted(
    rows: Sequence[RowRuns], boot: Bootstrap, metric: Metric, headline: str, floor: Floor, draws: int
) -> Bootstrap:
    """Return the bootstrap of the headline metric with failed runs counted, recomputed with the same draws for the rows
    that have such runs."""
    failing = {
        row.method: row.counted(headline, floor) for row in rows if row.scored and len(row.scored) < len(row.runs)
    }
    again = bootstrap_of(failing, metric, draws)
    return Bootstrap({**boot.rows, **again.rows})


def _entry(
    row: RowRuns, boots: Mapping[str, Bootstrap], counted: Bootstrap, headline: str, lowest: float
) -> dict[str, Any]:
    """Return one row of the board. A failed row has costs but no scores."""
    results = [result for result, _ in row.runs]
    scored = [result for result, _ in row.scored]
    errors = dict.fromkeys(result.error for result in results if result.error)
    scores = {name: asdict(boot.score(row.method)) for name, boot in boots.items() if row.method in boot.rows}
    least = -math.inf if row.method == MAJORITY else lowest - ROUNDING
    below = [result for result in scored if result.scores.get(headline, math.inf) < least]
    return {
        "method": row.method,
        "config": dict(row.config),
        "status": row.status if scored or row.status != "ok" else "failed",
        "n_seeds": len(scored),
        "n_failed": sum(result.status != "ok" for result in results),
        "n_diverged": sum(result.status == "diverged" for result in results) + len(below),
        "scores": scores,
        "counted": float(counted.rows[row.method].points.mean()) if scores else None,
        "costs": median_costs(scored or results),
        "below_majority": bool(scores) and scores[headline]["mean"] < least,
        "runs": [result.id for result in results],
        "errors": list(errors),
        "dropped": None,  # always None: a part of the format
    }


def _rank(entry: Mapping[str, Any]) -> tuple[int, float, str]:
    """Return the sort key of a row: best first with failed runs counted, failed rows last, equal scores by name."""
    if entry["counted"] is None:
        return 1, 0.0, entry["method"]
    return 0, -round(entry["counted"], DECIMALS), entry["method"]


def _differences(boot: Bootstrap, entries: Sequence[Mapping[str, Any]], headline: str) -> list[dict[str, Any]]:
    """Return the difference of every pair of scored rows, the better row as `a`, with almost stochastic order."""
    rows = {entry["method"]: entry for entry in entries if entry["scores"]}
    pairs = Bootstrap({method: boot.rows[method] for method in rows}).differences()
    told = []
    for pair in pairs:
        of_pair = (pair.a, pair.b)
        told.append({
            "metric": headline, **asdict(pair),
            "runs": [len(boot.rows[method].points) for method in of_pair],
            "failed": [len(boot.rows[method].points) - rows[method]["n_seeds"] for method in of_pair],
            "aso": _second_opinion(pair, boot, len(pairs)),
        })  # fmt: skip
    return told


def _disagreements(boots: Mapping[str, Bootstrap], headline: str, chosen: str | None) -> list[dict[str, Any]]:
    """Return, for each other metric, the method furthest above the chosen one by it, but not by the headline metric.

    It is listed only if the 95 % interval of its gain is above 0. This interval is for the pair alone; if a method has
    a single run, it covers only the examples.
    """
    if chosen is None or chosen not in boots[headline].rows:
        return []
    found = []
    for name, boot in boots.items():
        others = [other for other in boot.rows if boots[headline].difference(other, chosen).delta <= 0]
        pairs = [boot.difference(other, chosen) for other in others if other != chosen]
        ahead = [pair for pair in pairs if pair.low > ROUNDING]
        if ahead:
            best = max(ahead, key=lambda pair: pair.delta)
            found.append({"metric": name, "method": best.a, "chosen": chosen, "delta": best.delta, "low": best.low,
                          "high": best.high})  # fmt: skip
    return found


def _second_opinion(pair: RowDifference, boot: Bootstrap, pairs: int) -> dict[str, Any] | None:
    """Return the almost stochastic order of a pair: how nearly the runs of the higher mean dominate the other's.

    None with too few runs, or if the runs of each row are all equal, because single numbers have no distribution.
    """
    order = (pair.a, pair.b) if pair.delta >= 0 else (pair.b, pair.a)
    of, beside = (boot.rows[method].points for method in order)
    if min(len(of), len(beside)) < FEWEST_RUNS or max(np.ptp(of), np.ptp(beside)) < ROUNDING:
        return None
    return {"of": order[0], **asdict(almost_stochastic_order(of, beside, confidence=1 - LEVEL / pairs))}


def _expected_best(rows: Sequence[RowRuns], headline: str, floor: Floor) -> list[dict[str, Any]]:
    """Return, for each row, the curve of the expected best validation score of n of its seeds."""
    failed = floor.validation.get(headline)
    curves = []
    for row in rows:
        found = curve([result for result, _ in row.runs] if row.scored else [], headline, DEFAULT_COST, failed)
        if found:
            curves.append({"method": row.method, "of": "seeds", "cost": DEFAULT_COST, "points": found})
    return curves


def _notes(
    rows: Sequence[RowRuns], entries: Sequence[Mapping[str, Any]], floor: Floor, task: Mapping[str, Any]
) -> list[str]:
    """Return the caveats on the order of the rows, and on the effect of the task's settings."""
    made, least = [len(row.runs) for row in rows if row.scored], floor_name(task)
    notes = _short(rows)
    if made and min(made) < ENOUGH_RUNS:
        runs = several(min(made), "run")
        note = f"not enough runs to rank: {runs} of a method; {ENOUGH_RUNS} show a ranking, 10 support a claim"
        if min(made) < FEWEST_RUNS:
            note += f". Under {FEWEST_RUNS} runs the spread over seeds is unknown, so no verdict is given"
        notes.append(note)
    for row in rows:
        lost = len(row.runs) - len(row.scored)
        if row.scored and lost:
            notes.append(
                f"{row.method}: {lost} of {len(row.runs)} runs did not finish; its scores are of the others; "
                f"in the verdicts they count as {least}"
            )
    notes += [note for row in rows for note in (_note_on_memory(row), _without_shots(row)) if note]
    notes += [_diverged(entry, least) for entry in entries if entry["n_diverged"]]
    return notes + _of_settings(rows, floor, task)


def _of_settings(rows: Sequence[RowRuns], floor: Floor, task: Mapping[str, Any]) -> list[str]:
    """Return a note on each setting of the task that some rows did not use, and on the mean cost of predictions."""
    told = {
        name: [row.method for row in rows if row.scored and not any(name in result.facts for result, _ in row.scored)]
        for name in HEEDED
        if task.get(name) is not None
    }
    notes = [f"{name} had no effect on {', '.join(methods)}" for name, methods in told.items() if methods]
    if task.get("costs") is None or SAVED not in floor.test:
        return notes
    found = {row.method: np.mean([stats[SAVED][:, 0].mean() for _, stats in row.scored]) for row in rows if row.scored}
    listed = ", ".join(f"{method} {cost:.3g}" for method, cost in sorted(found.items(), key=lambda pair: pair[1]))
    constant = float(np.asarray(floor.test[SAVED][:, 1:]).mean(axis=0).min())
    return [*notes, f"mean cost of a test row: {listed}; a point of {SAVED} is {constant / 100:.3g}"]


def _short(rows: Sequence[RowRuns]) -> list[str]:
    """Return a note if the test split has few rows."""
    few = min((len(of) for row in rows for _, stats in row.scored for of in stats.values()), default=ENOUGH_ROWS)
    if few >= ENOUGH_ROWS:
        return []
    told = f"the test split has {several(few, 'row')}: under {ENOUGH_ROWS} intervals and verdicts are rough"
    return [f"{told}, under 6 nothing can be told apart"]


def _note_on_memory(row: RowRuns) -> str:
    """Return a note if batches of a row were split for lack of memory, else an empty string."""
    passes = sum("passes_in_parts" in result.facts for result, _ in row.runs)
    runs = [result.facts["accumulation"] for result, _ in row.runs if "accumulation" in result.facts]
    answers = sum("answers_in_parts" in result.facts for result, _ in row.runs)
    told = []
    if runs:
        most, steps = max(run["parts"] for run in runs), sum(run["steps"] for run in runs)
        told.append(f"{steps:,} batches went through in up to {most} parts, whose gradients add up")
    if passes:
        told.append(f"the frozen network read its batches in parts, in {several(passes, 'run')}")
    if answers:
        told.append(f"batches were answered in parts, in {several(answers, 'run')}")
    return f"{row.method}: for want of memory {'; '.join(told)}" if told else ""


def _without_shots(row: RowRuns) -> str:
    """Return a note if shots of a prompt did not fit into the context, else an empty string."""
    dropped = [lost for result, _ in row.runs if (lost := result.facts.get("shots_dropped", 0))]
    if not dropped:
        return ""
    told = f"up to {max(dropped)} of its shots did not fit into the context, in {several(len(dropped), 'run')}"
    return f"{row.method}: {told}"


def _diverged(entry: Mapping[str, Any], least: str) -> str:
    """Return a note on a row's runs that diverged or scored below the floor."""
    of = entry["n_seeds"] + entry["n_failed"]
    found = f"{entry['n_diverged']} of {of} runs diverged or scored below {least}"
    return f"{entry['method']}: {found}" + (", and so does their mean" if entry["below_majority"] else "")


def _note_on_sources(varied: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return a note if only some sources of variation differ between runs."""
    held = [source for source in sources if source not in varied]
    if not held:
        return []
    return [
        f"only {' and '.join(varied)} {'varies' if len(varied) == 1 else 'vary'} between runs, {' and '.join(held)} "
        f"{'is' if len(held) == 1 else 'are'} held as in seed 0: spreads, intervals and verdicts are of that alone"
    ]
