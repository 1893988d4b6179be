"""A learning curve as data: the content of `curve.json`, from finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.compare.grid import real_cost, statistics_on_test
from graftwork.compare.leaderboard import command_line
from graftwork.compare.leaderboard_data import bootstrap_of, median_costs
from graftwork.compare.majority_floor import floor_of
from graftwork.compare.savings import savings
from graftwork.compare.statistics import FEWEST_RUNS, Bootstrap
from graftwork.core.backbone import BackboneCard
from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.run import RunResult
from graftwork.data.splits.draws import SubsetDraw
from graftwork.machine.environment import environment
from graftwork.registry import metrics
from graftwork.run.session import Session
from graftwork.train.wrapper_method import beginning
from graftwork.units import several

FORMAT = 1
RESAMPLES = 2_000
VALIDATION = (
    "Choices were made on at most as many rows of the validation split as were trained on, drawn in the same way: the "
    "labels of a point are its training rows and up to as many again."
)

Statistics = Mapping[str, NDArray[np.float64]]  # metric -> (N, K) on the test split


@dataclass(frozen=True)
class CurveRun:
    """One run of the curve: a method on a draw."""

    label: str
    item: ConfiguredMethod
    card: BackboneCard | None  # card of its backbone
    drawn: SubsetDraw
    result: RunResult


def transfers(item: ConfiguredMethod, card: BackboneCard | None) -> bool:
    """Return whether the method starts from pretrained weights, on a backbone with this `card`."""
    return item.method.uses_backbone and beginning(item.method, card)["pretrained"]


def content_of(
    session: Session, curve_runs: Sequence[CurveRun], sizes: Sequence[str], notes: Sequence[str], draws: int, seed: int
) -> dict[str, Any]:
    """Return the content of `curve.json`. Scores are fractions. It is a file format: keys are only ever added."""
    task = session.dataset.task
    labels = list(dict.fromkeys(one.label for one in curve_runs))
    points, differences = [], {}
    for size in sizes:
        here = [one for one in curve_runs if one.drawn.size.word == size]
        by_label = {label: listed for label in labels if (listed := [one for one in here if one.label == label])}
        found, differences[size] = _points(by_label, size, session, task.metrics)
        points += found
    described = {"name": task.name, "data": session.dataset.digest} | task.question()
    described["rows"] = {name: len(split.examples) for name, split in session.dataset.splits.items()}
    first = {one.label: one for one in reversed(curve_runs)}
    methods = []
    for label in labels:
        item, transferring = first[label].item, transfers(first[label].item, first[label].card)
        fresh = item.method.uses_backbone and not transferring
        methods.append(
            {"method": label, "config": dict(item.config), "fresh_weights": fresh, "transfers": transferring}
        )
    opened: dict[str | None, dict[str, RunResult]] = {}
    for one in curve_runs:
        opened.setdefault(one.card.id if one.card else None, {})[one.result.id] = one.result
    return {
        "format": FORMAT,
        "task": described,
        "backbone": asdict(session.backbone.card) if session.backbone else None,
        "headline_metric": task.metrics[0],
        "draws": draws,
        "seed": seed,
        "sizes": [_size(size, [one for one in curve_runs if one.drawn.size.word == size]) for size in sizes],
        "methods": methods,
        "points": points,
        "differences": differences,
        "savings": savings(points, methods, task.metrics[0]),
        "search_costs": {
            name: asdict(cost) for name, cost in real_cost(*(found.values() for found in opened.values())).items()
        },
        "data_report": dict(session.dataset.report),
        "notes": [*notes, VALIDATION, *_failures(points), *_few(draws)],
        "statistics": {"draws": RESAMPLES, "seed": 0, "level": 0.95},
        "command": command_line(),
        "environment": environment() | {"runs_at_once": session.runs_at_once},
    }


def _size(word: str, curve_runs: Sequence[CurveRun]) -> dict[str, Any]:
    drawn = {one.drawn.number: one.drawn for one in curve_runs}.values()
    return {
        "size": word,
        "rows": statistics.mean(len(one.dataset.train.examples) for one in drawn),
        "validation_rows": statistics.mean(len(one.dataset.validation.examples) for one in drawn),
        "classes_short": max(one.short for one in drawn),
    }


def _points(
    curve_runs: Mapping[str, Sequence[CurveRun]], size: str, session: Session, names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a point per method at one size, and the differences of all pairs in the headline metric."""
    done = {label: [one for one in listed if one.result.status == "ok"] for label, listed in curve_runs.items()}
    stats = {
        one.result.id: statistics_on_test(one.drawn.dataset, session.store.root / one.result.id, names)
        for listed in done.values()
        for one in listed
    }

    def drawn(runs: Mapping[str, Sequence[CurveRun]], name: str) -> Bootstrap:
        of = {label: tuple(_counted(one, stats)[name] for one in listed) for label, listed in runs.items()}
        return bootstrap_of(of, metrics.get(name), RESAMPLES)

    boots = {name: drawn(done, name) for name in names}
    points = []
    for label, listed in curve_runs.items():
        results, scored = [one.result for one in listed], [one.result for one in done[label]]
        points.append({
            "method": label,
            "size": size,
            "rows": statistics.mean(len(one.drawn.dataset.train.examples) for one in listed),
            "n_draws": len(scored),
            "n_failed": len(results) - len(scored),
            "scores": {name: asdict(boot.score(label)) for name, boot in boots.items() if scored},
            "by_draw": {str(one.drawn.number): dict(one.result.scores) for one in done[label]},
            "costs": median_costs(scored or results),
            "runs": [result.id for result in results],
            "errors": list(dict.fromkeys(result.error for result in results if result.error)),
        })  # fmt: skip
    compared = boots[names[0]]
    if any(0 < len(done[label]) < len(listed) for label, listed in curve_runs.items()):
        compared = drawn({label: listed for label, listed in curve_runs.items() if done[label]}, names[0])
    return points, [asdict(pair) for pair in compared.differences()]


def _counted(one: CurveRun, known: Mapping[str, Statistics]) -> Statistics:
    """Return a run's statistics for the verdicts: a failed run counts as the majority class of its draw."""
    return known[one.result.id] if one.result.status == "ok" else floor_of(one.drawn.dataset).test


def _failures(points: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{point['method']} at {point['size']}: {point['n_failed']} of {len(point['runs'])} runs did not finish: "
        + (point["errors"] or ["unknown"])[0].partition("\n")[0]
        for point in points
        if point["n_failed"]
    ]


def _few(draws: int) -> list[str]:
    """Return a caveat for a curve of few draws."""
    if draws >= FEWEST_RUNS:
        return []
    return [f"with {several(draws, 'draw')} the luck of which rows were labelled is not known"]
