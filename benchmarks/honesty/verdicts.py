"""False-positive rate and power of the board's verdicts, on simulated pairs of methods.

    python benchmarks/honesty/verdicts.py            measure every cell that is not in results/verdicts.json yet
    python benchmarks/honesty/verdicts.py --table    print the results as Markdown

An outcome is correct if

    location of the method + difficulty of the example + (method x example) + effect of the seed + noise > 0

where every term after the first is normal, drawn anew for every pair: 500 examples, mostly easy or hard for both, whose
expected accuracy is 85 %. Equal methods have the same expected accuracy, however much their seeds vary.
A run may fail; by the board's rule it then counts as the majority class, correct on half of the examples. R pairs,
S seeds, N examples.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from graftwork.compare.leaderboard_data import RowRuns
from graftwork.compare.majority_floor import Floor
from graftwork.compare.statistics import LEVEL, RowSample, bootstrap
from graftwork.core.run import RunResult
from graftwork.io.files import write_json
from graftwork.machine.environment import environment
from graftwork.registry import metrics

RESULTS = Path(__file__).parent / "results" / "verdicts.json"
BATCH = 50  # pairs that share the draws of one bootstrap
EASY_OR_HARD = 2.0  # sd of the examples' difficulty, in sds of the noise
MAJORITY = 0.5  # share of the examples of the majority class
POWER = 0.8  # of the z-test with known variance, at the simulated difference
OURS, ORACLE = "graftwork", "z, variance known"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A simulated setting of two rows. Standard deviations over seeds are in points of accuracy."""

    name: str
    seeds: tuple[int, int] = (5, 5)
    seed_sds: tuple[float, float] = (1.0, 1.0)
    own: float = 0.8  # sd of method x example; 0: the same method twice
    failing: float = 0.0  # probability that a run fails
    accuracy: float = 0.85
    examples: int = 500


KINDS = (
    Cell("the same method twice", own=0.0),
    Cell("the same method, its seeds lucky or not", own=0.0, seed_sds=(3.0, 3.0)),
    Cell("two methods"),
    Cell("seeds of one scatter 4 times as much", seed_sds=(0.5, 2.0)),
    Cell("10 times as much, no method x example", seed_sds=(0.3, 3.0), own=0.0),
    Cell("1 run of 10 fails", failing=0.1),
    Cell("1 of 10 fails, 4 times as much", failing=0.1, seed_sds=(0.5, 2.0)),
    Cell("100 examples", examples=100),
    Cell("97 % right", accuracy=0.97, seed_sds=(0.4, 0.4)),
)
CELLS = (
    *(replace(kind, seeds=(seeds, seeds)) for seeds in (5, 10) for kind in KINDS),
    Cell("two methods, unequally many runs", seeds=(5, 10)),
)


def key_of(cell: Cell) -> str:
    """Return the key of the cell in the results."""
    return f"{cell.name}, {cell.seeds[0]} and {cell.seeds[1]} seeds"


@dataclass(frozen=True)
class Pairs:
    """R simulated pairs: the outcomes of both rows, and which runs failed."""

    right: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # (R, S, N) each, failed runs as the majority class
    failed: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # (R, S)
    majority: NDArray[np.bool_]  # (R, N)


def simulated(cell: Cell, pairs: int, apart: float, random: np.random.Generator) -> Pairs:
    """Simulate pairs: row a has expected accuracy `cell.accuracy`, row b `apart` less."""
    difficulty = EASY_OR_HARD * random.standard_normal((pairs, 1, cell.examples))
    majority = random.random((pairs, cell.examples)) < MAJORITY
    right, failed = [], []
    for seeds, sd, accuracy in zip(cell.seeds, cell.seed_sds, (cell.accuracy, cell.accuracy - apart), strict=True):
        location, luck = scale(accuracy, sd / 100, cell.own)
        latent = random.standard_normal((pairs, seeds, cell.examples), dtype=np.float32)
        latent += difficulty + cell.own * random.standard_normal((pairs, 1, cell.examples))
        latent += luck * random.standard_normal((pairs, seeds, 1))
        lost = random.random((pairs, seeds)) < cell.failing
        right.append(np.where(lost[:, :, None], majority[:, None, :], latent > -location))
        failed.append(lost)
    return Pairs((right[0], right[1]), (failed[0], failed[1]), majority)


def scale(accuracy: float, seed_sd: float, own: float) -> tuple[float, float]:
    """Return location and sd of the seed effect.

    The expected accuracy is then `accuracy`, and its sd over seeds, to first order, `seed_sd`.
    """
    quantile, fixed = float(stats.norm.ppf(accuracy)), 1 + EASY_OR_HARD**2 + own**2
    slope = seed_sd / float(stats.norm.pdf(quantile))
    whole = math.sqrt(fixed / (1 - slope**2))
    return quantile * whole, slope * whole


def batches(cell: Cell, pairs: int, apart: float, stream: int) -> Iterator[Pairs]:
    """Yield `pairs` simulated pairs in batches, the same ones on every call."""
    place = CELLS.index(cell) if cell in CELLS else len(CELLS)
    for at in range(0, pairs, BATCH):
        yield simulated(cell, min(BATCH, pairs - at), apart, np.random.default_rng([17, place, stream, at]))


def verdicts(found: Pairs, draws: int, seed: int) -> NDArray[np.int64]:
    """Return (R,) 1 if the product's verdict favours a, -1 if b, 0 if it cannot tell."""
    samples = []
    for pair in range(len(found.majority)):
        floor = Floor({"accuracy": found.majority[pair][:, None].astype(np.float64)}, {})
        for name, right, failed in zip("ab", found.right, found.failed, strict=True):
            runs = tuple(
                (RunResult("", at, "failed"), {})
                if failed[pair, at]
                else (RunResult("", at, "ok"), {"accuracy": right[pair, at][:, None].astype(np.float64)})
                for at in range(right.shape[1])
            )
            counted = RowRuns(name, {}, "ok", runs).counted("accuracy", floor)
            samples += (
                [RowSample(f"{name}{pair}", counted)] if counted else []
            )  # no run: all failed, the row has no score
    boot = bootstrap(samples, metrics.get("accuracy"), draws=draws, seed=seed)
    told = {"better": 1, "worse": -1, "cannot tell": 0}
    return np.array([
        told[boot.difference(f"a{pair}", f"b{pair}").verdict] if {f"a{pair}", f"b{pair}"} <= boot.rows.keys() else 0
        for pair in range(len(found.majority))
    ])  # fmt: skip


def others(found: Pairs, known_sd: float) -> dict[str, NDArray[np.bool_]]:
    """Return which pairs the textbook tests distinguish, two-sided at 5 %."""
    a, b = (right.mean(axis=2) for right in found.right)  # (R, S)
    apart = a.mean(axis=1) - b.mean(axis=1)
    by_example = found.right[0].mean(axis=1) - found.right[1].mean(axis=1)  # (R, N)
    first = found.right[0][:, 0].astype(np.int64) - found.right[1][:, 0]  # (R, N)
    examples = by_example.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        over_examples = apart / (by_example.std(axis=1, ddof=1) / math.sqrt(examples))
        mcnemar = first.sum(axis=1) / np.sqrt(np.abs(first).sum(axis=1))
        parts = [scores.var(axis=1, ddof=1) / scores.shape[1] for scores in (a, b)]
        freedom = sum(parts) ** 2 / sum(
            part**2 / (scores.shape[1] - 1) for part, scores in zip(parts, (a, b), strict=True)
        )
        tests = {
            "Welch's t over seeds": (apart / np.sqrt(sum(parts)), freedom),
            "examples alone, means over seeds": (over_examples, examples - 1),
            "McNemar, first runs": (mcnemar, math.inf),
            ORACLE: (apart / known_sd, math.inf),
        }
        if a.shape == b.shape:
            by_seed = a - b
            paired = by_seed.mean(axis=1) / (by_seed.std(axis=1, ddof=1) / math.sqrt(by_seed.shape[1]))
            tests["paired t over seeds"] = (paired, by_seed.shape[1] - 1)
    return {
        name: np.nan_to_num(2 * stats.t.sf(np.abs(value), degrees), nan=1.0) < LEVEL
        for name, (value, degrees) in tests.items()
    }


def known_sd(cell: Cell, pairs: int, apart: float) -> float:
    """Return the sd of the difference of means over seeds, estimated from separate simulated pairs."""
    means = [
        found.right[0].mean(axis=(1, 2)) - found.right[1].mean(axis=(1, 2)) for found in batches(cell, pairs, apart, 2)
    ]
    return float(np.concatenate(means).std(ddof=1))


def rates(cell: Cell, pairs: int, apart: float, sd: float, draws: int, stream: int) -> dict[str, float]:
    """Return test -> share of the pairs that it distinguishes."""
    told: dict[str, list[NDArray[Any]]] = {}
    for at, found in enumerate(batches(cell, pairs, apart, stream)):
        for name, each in ({OURS: verdicts(found, draws, at) != 0} | others(found, sd)).items():
            told.setdefault(name, []).append(each)
    return {name: float(np.concatenate(each).mean()) for name, each in told.items()}


def measured(cell: Cell, pairs: int, power_pairs: int, draws: int) -> dict[str, Any]:
    """Measure one cell: the false-positive rate of every test, and its power."""
    began = time.process_time()
    pilot = max(1000, power_pairs)
    sd = known_sd(cell, pilot, 0.0)
    false = rates(cell, pairs, 0.0, sd, draws, 0)
    apart = min((stats.norm.ppf(1 - LEVEL / 2) + stats.norm.ppf(POWER)) * sd, cell.accuracy - 0.55)
    found = rates(cell, power_pairs, apart, known_sd(cell, pilot, apart), draws, 1)
    return {
        "cell": asdict(cell), "pairs": pairs, "power_pairs": power_pairs, "draws": draws, "known_sd": sd,
        "difference": apart, "false": false, "power": found, "cpu_seconds": time.process_time() - began,
    }  # fmt: skip


def draws_matter(pairs: int, few: int, many: int = 10_000) -> dict[str, Any]:
    """Count the verdicts that differ between few and many bootstrap draws, at a barely detectable difference."""
    cell, differ, told = CELLS[2], 0, [0, 0]
    apart = 2.4 * known_sd(cell, 1000, 0.0)
    for at, found in enumerate(batches(cell, pairs, apart, 3)):
        one, other = (verdicts(found, draws, at) for draws in (few, many))
        differ += int((one != other).sum())
        told = [told[0] + int((one != 0).sum()), told[1] + int((other != 0).sum())]
    return {"pairs": pairs, "few": few, "many": many, "differ": differ, "told": told}


def speed(rows: int, seeds: int = 10, examples: int = 2000) -> dict[str, Any]:
    """Measure the CPU seconds of a whole board's verdicts at the product's default number of draws."""
    random = np.random.default_rng(0)
    shared = random.random(examples)
    samples = [
        RowSample(
            f"row {row}",
            tuple((shared + random.normal(0, 0.1, examples) < 0.8).astype(np.float64)[:, None] for _ in range(seeds)),
        )
        for row in range(rows)
    ]
    began, wall = time.process_time(), time.perf_counter()
    bootstrap(samples, metrics.get("accuracy")).differences()
    return {
        "rows": rows, "seeds": seeds, "examples": examples, "draws": 10_000,
        "cpu_seconds": time.process_time() - began, "wall_seconds": time.perf_counter() - wall,
    }  # fmt: skip


def best_valid(result: Mapping[str, Any]) -> tuple[str, float]:
    """Return the most powerful test without known variance whose false-positive rate is at most 5 %.

    A rate within two standard errors above 5 % passes: this tolerance is granted to the other tests, not to ours.
    """
    most = LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / result["pairs"])
    valid = {
        name: power
        for name, power in result["power"].items()
        if name not in (OURS, ORACLE) and result["false"][name] <= most
    }
    name = max(valid, key=lambda one: valid[one], default="")
    return name, valid.get(name, 0.0)


def table(content: Mapping[str, Any]) -> str:
    """Format the measured cells as Markdown."""
    listed = [content["cells"][key_of(cell)] for cell in CELLS if key_of(cell) in content["cells"]]
    lines = [["pairs of", "seeds", "apart", *SHOWN.values(), "best valid", "behind it", "behind z"]]
    lines.append(["---"] * len(lines[0]))
    lines += [_line(result) for result in listed]
    worst = max(result["false"][OURS] for result in listed)
    behind = max(best_valid(result)[1] - result["power"][OURS] for result in listed)
    where, draws, first = content["environment"], content["draws"], listed[0]
    told = [
        f"Highest rate of false verdicts: {100 * worst:.2f} % ({first['pairs']:,} equal pairs a cell, standard error "
        f"{100 * math.sqrt(LEVEL * (1 - LEVEL) / first['pairs']):.2f}). Farthest behind the best valid test: "
        f"{100 * behind:.1f} points ({first['power_pairs']:,} pairs a cell).",
        f"Of {draws['pairs']} pairs about to be told apart {draws['differ']} had another verdict with {draws['few']:,} "
        f"draws than with {draws['many']:,} ({draws['told'][0]} and {draws['told'][1]} told apart).",
        "Verdicts of 10 seeds x 2,000 examples at 10,000 draws, on one processor: "
        + ", ".join(f"{one['rows']} rows {one['cpu_seconds']:.1f} s" for one in content["speed"])
        + ".",
        f"{where['processor']}, commit {(where['commit'] or {}).get('hash', 'unknown')[:8]}, {where['time'][:10]}; "
        f"{sum(result['cpu_seconds'] for result in listed):.0f} processor seconds in all.",
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n\n" + "\n\n".join(told)


SHOWN = {
    OURS: "Graftwork",
    "paired t over seeds": "paired t",
    "Welch's t over seeds": "Welch's t",
    "examples alone, means over seeds": "examples alone",
    "McNemar, first runs": "McNemar",
    ORACLE: "z",
}  # test -> title of its column


def _line(result: Mapping[str, Any]) -> list[str]:
    """Format `false positives / power` of every test, in percent."""
    (best, power), own = best_valid(result), result["power"][OURS]
    counts = dict.fromkeys(result["cell"]["seeds"])
    told = [
        f"{100 * result['false'][name]:.1f} / {100 * result['power'][name]:.0f}" if name in result["false"] else "–"
        for name in SHOWN
    ]
    behind = [f"{100 * (power - own):.1f}" if best else "–", f"{100 * (result['power'][ORACLE] - own):.1f}"]
    start = [result["cell"]["name"], " and ".join(map(str, counts)), f"{100 * result['difference']:.1f}"]
    return [*start, *told, SHOWN.get(best, "none"), *behind]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the missing cells, and store each as soon as it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=10_000, help="equal pairs a cell")
    parser.add_argument("--power-pairs", type=int, default=4_000, help="pairs a cell with a difference")
    parser.add_argument("--draws", type=int, default=400, help="of the bootstrap; a board has 10,000")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, a process each")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--table", action="store_true", help="print the results and measure nothing")
    asked = parser.parse_args(arguments)
    content = json.loads(asked.out.read_text(encoding="utf-8")) if asked.out.is_file() else {"format": 1, "cells": {}}
    if asked.table:
        print(table(content))
        return
    wanted = {"pairs": asked.pairs, "power_pairs": asked.power_pairs, "draws": asked.draws}
    left = [
        cell
        for cell in CELLS
        if asked.only in key_of(cell)
        and {name: content["cells"].get(key_of(cell), {}).get(name) for name in wanted} != wanted
    ]
    content |= {"status": "ok", "environment": environment()}
    if "speed" not in content:
        content["speed"] = [speed(rows) for rows in (2, 8)]
        content["draws"] = draws_matter(asked.power_pairs // 10 or 1, asked.draws)
        write_json(asked.out, content)
    with ProcessPoolExecutor(asked.jobs) as pool:
        done = pool.map(partial(measured, **wanted), left)
        for at, (cell, result) in enumerate(zip(left, done, strict=True), start=1):
            content["cells"][key_of(cell)] = result
            write_json(asked.out, content)
            print(f"{at}/{len(left)} {key_of(cell)}: false {100 * result['false'][OURS]:.2f} %, "
                  f"power {100 * result['power'][OURS]:.1f} %, {result['cpu_seconds']:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
