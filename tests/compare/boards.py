"""Synthetic rows, runs and boards that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.compare.leaderboard_data import Findings, RowRuns, leaderboard
from graftwork.compare.majority_floor import MAJORITY, Floor
from graftwork.core.meter import Cost
from graftwork.core.run import RunResult
from graftwork.core.task import Task

EXAMPLES = 200


class Share:
    """A metric whose one statistic is 1 where the prediction is right."""

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) -> (N, 1)."""
        return (targets == predictions).astype(np.float64)[:, None]

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1) -> (…)."""
        return np.asarray(means[..., 0])


METRICS = {"accuracy": Share(), "macro_f1": Share()}


def hits(share: float, seed: int, examples: int = EXAMPLES) -> NDArray[np.float64]:
    """(N, 1): about `share` of the examples right, mostly the same ones for every seed."""
    luck = np.random.default_rng(0).random(examples) + np.random.default_rng([7, seed]).normal(0, 0.02, examples)
    return (luck < share).astype(np.float64)[:, None]


def price(seconds: float, grade: str = "meter") -> dict[str, Cost]:
    """A price tag of the usual lines, some of them unknown."""
    return {
        "train_seconds": Cost(seconds, "s", grade),
        "total_seconds": Cost(seconds + 2, "s", "meter"),
        "trained_parameters": Cost(int(1000 * seconds), "parameters", "counter"),
        "stored_bytes": Cost(int(4000 * seconds), "bytes", "counter"),
        "train_flops": Cost(1e12 * seconds, "FLOP", "counter"),
        "peak_memory_bytes": Cost(9e8, "bytes", "meter"),
        "energy_joules": Cost(20 * seconds, "J", "model"),
        "co2e_grams": Cost(None, "g", "model"),
        "predict_latency_seconds": Cost(0.006, "s", "meter"),
        "predict_per_second": Cost(480.0, "per second", "meter"),
    }


def row(method: str, share: float, seconds: float, seeds: int = 5) -> RowRuns:
    """A row whose runs all went through."""
    runs = []
    for seed in range(seeds):
        right = hits(share, seed)
        scores = {name: float(right.mean()) for name in METRICS}
        result = RunResult(
            f"{method}-{seed}",
            seed,
            "ok",
            scores,
            costs=price(seconds + seed),
            facts={"epochs": 4},
            environment={"torch": "2"},
        )
        runs.append((result, dict.fromkeys(METRICS, right)))
    return RowRuns(method, {"rank": 8}, "ok", tuple(runs))


def partly(method: str, share: float, seconds: float, *failed: int, status: str = "diverged") -> RowRuns:
    """A row of 5 runs, of which the seeds `failed` did not go through."""
    runs = []
    for result, stats in row(method, share, seconds).runs:
        if result.seed in failed:
            runs.append((RunResult(result.id, result.seed, status, costs=price(1.0), error="training diverged"), {}))
        else:
            runs.append((result, stats))
    return RowRuns(method, {"rank": 8}, "ok", tuple(runs))


def broken(method: str, error: str = "asked for 7 GB\nand more") -> RowRuns:
    """A row whose one run failed."""
    result = RunResult(f"{method}-0", 0, "out_of_memory", costs={"train_seconds": Cost(1.5, "s", "meter")}, error=error)
    return RowRuns(method, {}, "out_of_memory", ((result, {}),))


def beside(method: str, gain: float, prior: float, alone: float | None = None, **more: Any) -> dict[str, Any]:
    """What a decision says of another method than the chosen one, which scores so much above it; each ± 2 points."""

    def around(mean: float) -> tuple[float, float, float]:
        return mean, mean - 0.02, mean + 0.02

    return {
        "method": method, "ran": alone is not None, "gain": around(gain), "prior": around(prior),
        "rows_alone": None if alone is None else around(alone),
    } | more  # fmt: skip


def decision(
    chosen: str,
    shortfalls: Mapping[str, float],
    cheaper: Mapping[str, Any] | None = None,
    rivals: Sequence[Mapping[str, Any]] = (),
    worth: float = 0.005,
) -> dict[str, Any]:
    """What a board says of which method to use; `shortfalls` by method, the chosen one among them."""
    methods = [
        {"method": method, "runs": 1, "validation": 0.8, "seconds": 1.0, "shortfall": mean, "low": 0.0,
         "high": 2 * mean}
        for method, mean in shortfalls.items()
    ]  # fmt: skip
    return {
        "worth": worth, "chosen": chosen, "within": shortfalls[chosen] <= worth, "cheaper": cheaper,
        "rivals": list(rivals), "methods": methods, "traits": {}, "validation_rows": 1200, "boards": 51, "left": [],
    }  # fmt: skip


def board(rows: Sequence[RowRuns], **findings: Any) -> dict[str, Any]:
    """A leaderboard of these rows, with few draws. Its floor is the row `majority`, else nothing is below it."""
    task = {"name": "toy", "kind": "classification"}
    low = [stats for row in rows if row.method == MAJORITY for _, stats in row.runs if stats]
    floor = Floor(low[0] if low else dict.fromkeys(METRICS, hits(0.0, 0)), {})
    findings = {"floor": floor} | findings
    return leaderboard(task, {"id": "tiny"}, rows, METRICS, Findings(**findings), draws=500)


def usual() -> list[RowRuns]:
    """Four methods from a baseline to the best, and one that failed."""
    return [
        row("majority", 0.3, 0.0001),
        row("linear_probe", 0.8, 10),
        row("full", 0.93, 200),
        row("adapter", 0.928, 100),
        broken("lora"),
    ]


def receipts(rows: Sequence[RowRuns]) -> list[Mapping[str, Any]]:
    """The rows' runs as the report takes them."""
    return [{"method": item.method} | asdict(result) for item in rows for result, _ in item.runs]
