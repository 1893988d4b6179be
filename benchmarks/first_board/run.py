"""Compares every method on six published data sets and keeps the boards: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch

import graftwork as gw

HERE = Path(__file__).parent
SEEDS = {"trec6": 5, "mrpc": 3, "stsb": 3, "sms_spam": 3, "banking77": 1, "crowdflower_primary_emotions": 3}
SETTINGS = {
    "mrpc": {"metrics": ("accuracy", "f1", "matthews"), "positive": "paraphrase"},
    "stsb": {"kind": "regression"},
    "sms_spam": {"metrics": ("f1", "accuracy", "matthews"), "positive": "spam"},
}


def task(name: str) -> gw.Task:
    """The task in the working folder; a split that was not published is drawn by content hash."""
    whole = Path(name) / "all.tsv"
    if whole.exists():
        return gw.Task.from_file(whole, name=name, **SETTINGS.get(name, {}))
    files = {"validation": Path(name) / "dev.tsv", "test": Path(name) / "test.tsv"}
    given = {split: path for split, path in files.items() if path.exists()}
    return gw.Task.from_file(Path(name) / "train.tsv", name=name, **given, **SETTINGS.get(name, {}))


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SEEDS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--methods", help="a,b,… (default: all that fit)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs = chosen.runs.absolute()
    os.chdir(chosen.data)  # so that the boards name files by where they stand in the collection
    for name in chosen.names:
        methods = chosen.methods.split(",") if chosen.methods else None
        out = HERE / "results" / name
        board = gw.compare(
            task(name), methods=methods, seeds=SEEDS[name], exhaustive=True, out=out, runs=runs, progress=say
        )
        print(f"{name}: {board.executed} runs executed, {board.reused} reused", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    HERE = HERE.absolute()
    main()
