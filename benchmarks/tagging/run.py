"""Compares the ways of tagging words on three published corpora: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch

import graftwork as gw

HERE = Path(__file__).parent
CORPORA = ("ncbi_disease", "conll2000", "ud_ewt")
METHODS = ("majority", "most_frequent_tag", "perceptron_tagger", "linear_probe", "adapter", "full")


def task(name: str) -> gw.Task:
    """The task in the working folder; conll2000 has no validation file, so a tenth of its train is drawn."""
    train = next(Path(name).glob("train.conll*"))
    dev = Path(name) / "dev.conll"
    given = {"validation": dev} if dev.exists() else {}
    return gw.Task.from_file(train, name=name, kind="tagging", test=Path(name) / "test.conll", **given)


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CORPORA))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per corpus")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs = chosen.runs.absolute()
    os.chdir(chosen.data)  # so that the boards name files by where they stand in the collection
    for name in chosen.names:
        board = gw.compare(
            task(name),
            methods=METHODS,
            seeds=chosen.seeds,
            exhaustive=True,
            jobs=1,
            out=HERE / "results" / name,
            runs=runs,
            progress=say,
        )
        print(f"{name}: {board.executed} runs executed, {board.reused} reused", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    HERE = HERE.absolute()
    main()
