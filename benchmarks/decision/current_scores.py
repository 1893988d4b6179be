"""Validation scores of methods that train no network on `many_tasks`: `python validation.py --data FOLDER`.

The boards keep no validation score of a method whose seeds all score alike; for the other methods it can be derived.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "many_tasks"))  # before the `run` beside this file

from driving import compared

import run as many_tasks
from graftwork.io.files import read_json, write_json
from graftwork.run.store import read_result

HERE = Path(__file__).parent.absolute()
METHODS = ("majority", "tfidf_svm", "linear_probe")


def main() -> None:
    """Measure the tasks that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--work", type=Path, default=Path("many_tasks_data"))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "validation.json")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    runs, data, out = (path.absolute() for path in (chosen.runs, chosen.data, chosen.out))
    chosen.work.mkdir(parents=True, exist_ok=True)
    os.chdir(chosen.work)
    for name in many_tasks.TASKS:
        found = read_json(out) if out.is_file() else {}
        if name in found or not (many_tasks.HERE / "results" / name).is_dir():
            continue
        task = many_tasks.written(name, data, Path(), many_tasks.ROWS)
        board = compared(
            task, methods=list(METHODS), seeds=1, precision="fp32", jobs=1, runs=runs, out=Path("boards") / name
        )
        scores = {
            row["method"]: read_result(runs / row["runs"][0] / "result.json").validation["accuracy"]
            for row in board.content["rows"]
        }
        write_json(out, found | {name: scores})


if __name__ == "__main__":
    main()
