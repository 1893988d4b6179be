"""Learning curves of three published data sets, ten draws a size: `python run.py --data FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch

import graftwork as gw

HERE = Path(__file__).parent.absolute()
SIZES = "8/class,16/class,64/class,10%,100%"
METHODS = "majority,tfidf_svm,prototype,linear_probe,contrastive,full,random:full:decay=1"
SETS = ("trec6", "sst2", "banking77")
DRAWS = 10


def task(name: str) -> gw.Task:
    """The task in the working folder; a validation split that was not published is drawn by content hash."""
    files = {"validation": Path(name) / "dev.tsv", "test": Path(name) / "test.tsv"}
    given = {split: path for split, path in files.items() if path.exists()}
    return gw.Task.from_file(Path(name) / "train.tsv", name=name, **given)


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs, results = chosen.runs.absolute(), chosen.results.absolute()
    os.chdir(chosen.data)  # so that the curves name files by where they stand in the collection
    for name in chosen.names:
        found = gw.curve(
            task(name),
            sizes=chosen.sizes,
            methods=chosen.methods,
            draws=chosen.draws,
            out=results / name,
            runs=runs,
            progress=say,
        )
        print(f"{name}: {found.executed} runs executed, {found.reused} reused", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    main()
