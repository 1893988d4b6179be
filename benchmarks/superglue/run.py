"""Compares methods on SuperGLUE's tasks of pairs and of choices: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch

import graftwork as gw

HERE = Path(__file__).parent
METHODS = ["majority", "tfidf_svm", "linear_probe", "adapter", "full"]
SEEDS = {"copa": 5, "wic": 5, "boolq": 3}


def task(name: str) -> gw.Task:
    """The task in the working folder. SuperGLUE's own test labels are hidden: its validation split is the test here."""
    folder = Path(name)
    if name == "copa":
        train, test = folder / "train_choices.jsonl", folder / "dev_choices.jsonl"
        return gw.Task.from_file(train, name=name, kind="choice", test=test)
    if name == "wic":
        return gw.Task.from_file(folder / "train.tsv", name=name, test=folder / "dev.tsv")
    return gw.Task.from_file(folder / "dev.tsv.gz", name=name)  # train and test are drawn from it


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SEEDS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--seeds", type=int, help="default: 5, of boolq 3")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs, out = chosen.runs.absolute(), chosen.out.absolute()
    os.chdir(chosen.data)  # so that the boards name files by where they stand in the collection
    for name in chosen.names:
        methods = [*METHODS, "bm25"] if name == "copa" else METHODS
        board = gw.compare(
            task(name), methods=methods, seeds=chosen.seeds or SEEDS[name], exhaustive=True, jobs=1, out=out / name,
            runs=runs, progress=say,
        )  # fmt: skip
        print(f"{name}: {board.executed} runs executed, {board.reused} reused", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    HERE = HERE.absolute()
    main()
