"""What a hypothesis gives away without its premise: `python run.py --data FOLDER`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch

import graftwork as gw

HERE = Path(__file__).parent.absolute()
ONE_SIDE = [
    f"partial_input:side={side}:by={by}" for by in ("tfidf_svm", "linear_probe") for side in ("first", "second")
]
METHODS = ["majority", "tfidf_svm", "linear_probe", *ONE_SIDE]


def task() -> gw.Task:
    """SNLI in the working folder: its dev part is learnt from, its test part is the test."""
    return gw.Task.from_file(Path("snli") / "dev.tsv", name="snli", test=Path("snli") / "test.tsv")


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs = chosen.runs.absolute()
    os.chdir(chosen.data)  # so that the board names files by where they stand in the collection
    board = gw.compare(
        task(), methods=chosen.methods, seeds=chosen.seeds, exhaustive=True, jobs=1, out=HERE / "results" / "snli",
        runs=runs, progress=say,
    )  # fmt: skip
    print(f"{board.executed} runs executed, {board.reused} reused", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    main()
