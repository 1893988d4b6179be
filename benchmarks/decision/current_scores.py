"""Scores on whole boards of the methods that train no network, as they are today: `python current_scores.py --data F`.

The boards were measured with earlier versions of some, and keep no validation score of a method whose seeds all score
alike; for the methods that train a network it can be derived.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1]))

from driving import compared, driver_of
from refit import CURRENT, WHOLE

import graftwork as gw
from graftwork.io.files import read_json, write_json
from graftwork.run.store import read_result

BENCHMARKS = Path(__file__).absolute().parents[1]
METHODS = ("majority", "tfidf_svm", "linear_probe")
Board = Callable[[], Any]


def boards(data: Path, runs: Path) -> Iterator[tuple[str, Board]]:
    """Yield the name of each board that is replayed, and what measures the methods on its rows."""
    many, glue = driver_of(BENCHMARKS / "many_tasks"), driver_of(BENCHMARKS / "glue")
    for name in WHOLE["many_tasks"]:
        yield f"many_tasks/{name}", lambda name=name: _of_many(many, name, data, runs)
    for name in WHOLE["glue"]:
        yield f"glue/{name}", lambda name=name: _of_glue(glue, name, data, runs)


def _of_many(many: Any, name: str, data: Path, runs: Path) -> Any:
    task = many.written(name, data, Path(), many.ROWS)
    return compared(
        task, methods=list(METHODS), seeds=1, precision="fp32", jobs=1, runs=runs, out=Path("boards") / name
    ).content


def _of_glue(glue: Any, name: str, data: Path, runs: Path) -> Any:
    out = Path("boards") / "glue"
    with tempfile.TemporaryDirectory() as folder:
        glue.lay_out(data, Path(folder), name)
        gw.benchmark(
            "glue", folder, tasks=[name], methods=list(METHODS), seeds=1, exhaustive=True, jobs=1, precision="bf16",
            out=out, runs=runs,
        )  # fmt: skip
    return read_json(out / name / "leaderboard.json")


def scores_of(board: dict[str, Any], runs: Path) -> dict[str, dict[str, float]]:
    """Return the headline score of each method on validation and on test."""
    metric, found = board["headline_metric"], {}
    for row in board["rows"]:
        validation = read_result(runs / row["runs"][0] / "result.json").validation[metric]
        found[row["method"]] = {"validation": validation, "test": row["scores"][metric]["mean"]}
    return found


def main() -> None:
    """Measure the boards that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--work", type=Path, default=Path("current_scores_data"))
    parser.add_argument("--out", type=Path, default=CURRENT)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    runs, data, out = (path.absolute() for path in (chosen.runs, chosen.data, chosen.out))
    chosen.work.mkdir(parents=True, exist_ok=True)
    os.chdir(chosen.work)
    for name, measure in boards(data, runs):
        found = read_json(out) if out.is_file() else {}
        if name not in found:
            write_json(out, found | {name: scores_of(measure(), runs)})
            print(name, flush=True)


if __name__ == "__main__":
    main()
