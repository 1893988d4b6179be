"""Compares methods on two sets of images and one of sounds and keeps the boards: `python run.py --folder FOLDER`."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import graftwork as gw

HERE = Path(__file__).parent.absolute()
BACKBONE = "hf:fixtures/weights/mobilenet_v2_1.0_224"


@dataclass(frozen=True)
class Question:
    """A task in the working folder, and what is compared on it."""

    data: str
    test: str
    methods: tuple[str, ...]
    seeds: int
    settings: dict[str, Any] = field(default_factory=dict)


QUESTIONS = {
    "flowers5": Question(
        "data/flowers5/train_list.tsv",
        "data/flowers5/val_list.tsv",
        ("majority", "colour_histogram", "linear_probe", "top_layers", "top_layers:k=5"),
        1,
        {"image": "file"},
    ),
    "hymenoptera": Question(
        "data/hymenoptera/train",
        "data/hymenoptera/val",
        ("majority", "colour_histogram", "linear_probe", "top_layers"),
        3,
    ),
    "free_spoken_digits": Question(
        "data/free_spoken_digits/train_list.tsv",
        "data/free_spoken_digits/test_list.tsv",
        ("majority", "log_mel"),
        3,
        {"sound": "file"},
    ),
}


def main() -> None:
    """Runs that are there already cost nothing, so an interrupted benchmark goes on where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(QUESTIONS))
    parser.add_argument("--folder", type=Path, required=True, help="folder with data/ and fixtures/")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    runs, cache = chosen.runs.absolute(), chosen.cache.absolute() if chosen.cache else None
    os.chdir(chosen.folder)  # so that the boards name files by where they stand in the collection
    for name in chosen.names:
        question = QUESTIONS[name]
        board = gw.compare(
            gw.Task.from_file(question.data, name=name, test=question.test, **question.settings),
            backbone=BACKBONE,
            methods=list(question.methods),
            seeds=question.seeds,
            exhaustive=True,
            jobs=1,
            out=HERE / "results" / name,
            runs=runs,
            cache=cache,
            progress=say,
        )
        print(f"{name}: {board.executed} runs executed, {board.reused} reused", flush=True)
        for row in board.rows:
            print(f"  {row['method']:24} {row['status']}", flush=True)


def say(done: float, text: str) -> None:
    """A line per run."""
    if text.endswith("starting"):
        print(f"{done:6.1%}  {text.removesuffix(': starting')}", flush=True)


if __name__ == "__main__":
    main()
