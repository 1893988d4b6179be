"""Boards of one network on one task, as JSON without paths of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks import Draw, task
from units import Result, Teller, private

import graftwork as gw
from graftwork.compare.grid import statistics_on_test
from graftwork.compare.statistics import RowSample
from graftwork.data.load import load
from graftwork.io.files import read_json
from graftwork.run.store import read_result

COSTS = (
    "train_flops", "train_seconds", "train_cpu_seconds", "total_seconds", "energy_joules", "trained_parameters",
    "stored_bytes",
)  # fmt: skip
RATES = (3e-4, 1e-3, 3e-3, 1e-2)


@dataclass(frozen=True)
class Place:
    """The folders of data and work, and the extent of the boards; the working folder is `work`."""

    data: Path
    work: Path
    draw: Draw
    seeds: int
    epochs: int

    def task(self, name: str) -> gw.Task:
        """Return the task; its files are written again, always the same."""
        return task(name, self.draw, self.data, self.work / "tasks" / name)


def board(name: str, place: Place, asked: gw.Task, backbone: str, methods: Sequence[str], **settings: Any) -> Result:
    """Compare every method with every seed."""
    chosen = {"seeds": place.seeds, "epochs": place.epochs} | settings
    found = gw.compare(
        asked,
        backbone=backbone,
        methods=list(methods),
        exhaustive=True,
        jobs=1,
        out=place.work / "boards" / name,
        runs=place.work / "runs",
        cache=place.work / "cache",
        device="cpu",
        progress=Teller(name),
        **chosen,
    )
    content = found.content
    return {
        "task": asked.name,
        "metric": content["headline_metric"],
        "rows": [_row(row, content["headline_metric"]) for row in content["rows"]],
        "of": content["task"]["rows"],
        "epochs": chosen["epochs"],
    }


def _row(row: Any, metric: str) -> Result:
    return {
        "method": row["method"],
        "status": row["status"],
        "score": row["scores"].get(metric),
        "costs": {key: row["costs"][key] for key in COSTS if key in row["costs"]},
        "runs": row["runs"],
        "errors": [private(str(error)) for error in row["errors"]],
    }


def chosen_rates(name: str, place: Place, asked: gw.Task, backbone: str, methods: Sequence[str]) -> Result:
    """Return the learning rate of each method that is best on validation on one task with seed 0; first of equals."""
    tried = [f"{method}:learning_rate={rate:g}" for method in methods for rate in RATES]
    found = board(name, place, asked, backbone, tried, seeds=1)
    scores: dict[str, dict[str, float]] = {}
    for row in found["rows"]:
        result = read_result(place.work / "runs" / row["runs"][0] / "result.json")
        rate = read_json(place.work / "runs" / row["runs"][0] / "spec.json")["method"]["learning_rate"]
        if result.status == "ok":
            scores.setdefault(row["method"].split(":")[0], {})[f"{rate:g}"] = result.validation[found["metric"]]
    best = {
        method: max((f"{rate:g}" for rate in RATES if f"{rate:g}" in tries), key=lambda rate: tries[rate])
        for method, tries in scores.items()
    }
    return {"task": asked.name, "validation": scores, "chosen": best}


def at_rates(methods: Sequence[str], rates: Result) -> list[str]:
    """Return the method labels with their chosen rates."""
    return [f"{method}:learning_rate={rates['chosen'][method]}" for method in methods if method in rates["chosen"]]


def method_of(label: str) -> str:
    """Return the label without its rate; other settings stay."""
    return ":".join(part for part in label.split(":") if not part.startswith("learning_rate="))


def samples(place: Place, asked: gw.Task, runs: dict[str, list[str]]) -> tuple[str, list[RowSample]]:
    """Return the headline metric, and for every name the statistics of its runs on the test split."""
    dataset = load(asked)
    metric = dataset.task.metrics[0]
    made = [
        RowSample(name, tuple(statistics_on_test(dataset, place.work / "runs" / run, [metric])[metric]
                           for run in listed))
        for name, listed in runs.items()
    ]  # fmt: skip
    return metric, made
