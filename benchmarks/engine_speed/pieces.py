"""The data sets of this benchmark, and random subsets drawn with a fixed seed, the same for all workers."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import graftwork as gw
from graftwork.core.task import Dataset, Split

SEED = 20_240
SPLITS = {"train": "train", "validation": "dev", "test": "test"}
WHOLE = "all"  # the file of a data set without official splits; validation and test are drawn from it


@dataclass(frozen=True)
class Piece:
    """A data set, or a random subset of the rows of its files."""

    name: str
    train: int | None = None  # rows of the training file; None: all
    test: int | None = None
    max_length: int = 128  # tokens of the peers' tokeniser; the engine truncates at the backbone's limit

    def at_most(self, rows: int | None) -> Piece:
        """Return the data set with at most `rows` rows per file: to try the benchmark, not for results."""
        if rows is None:
            return self
        return replace(self, train=min(rows, self.train or rows), test=min(rows, self.test or rows))


def task(piece: Piece, data: Path, folder: Path) -> gw.Task:
    """Return the task of `piece`, read from the collection `data`; subsets are written to `folder`."""
    paths = {}
    for split, stem in SPLITS.items():
        path = _find(data / piece.name, stem) or (_find(data / piece.name, WHOLE) if split == "train" else None)
        rows = {"train": piece.train, "validation": piece.test, "test": piece.test}[split]
        if path is not None:
            paths[split] = path if rows is None else _draw(path, rows, folder / f"{stem}.tsv")
    return gw.Task.from_file(
        paths["train"], name=piece.name, validation=paths.get("validation"), test=paths.get("test")
    )


def _find(folder: Path, stem: str) -> Path | None:
    return next((path for path in (folder / f"{stem}.tsv", folder / f"{stem}.tsv.gz") if path.exists()), None)


def _draw(path: Path, rows: int, to: Path) -> Path:
    """Write `rows` random rows of a file, in the file's order, and its header."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    header, *lines = [line for line in text.split("\n") if line]
    chosen = sorted(random.Random(SEED).sample(range(len(lines)), min(rows, len(lines))))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join([header, *(lines[i] for i in chosen)]) + "\n", encoding="utf-8")
    return to


def with_portion(dataset: Dataset, rows: int | None) -> Dataset:
    """Return the data set with `rows` random training rows; its epoch time, scaled, is that of the whole."""
    train = dataset.train
    if rows is None or rows >= len(train.examples):
        return dataset
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(train.examples))[:rows])
    part = Split("train", tuple(train.examples[i] for i in chosen), train.targets[chosen])
    return replace(dataset, splits={**dataset.splits, "train": part}, digest=f"{dataset.digest}:{rows}")
