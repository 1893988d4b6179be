"""The tasks of the boards: fixed samples of published data sets, with texts cut to the same number of words."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import graftwork as gw
from graftwork.io.files import write_text

Row = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A data set: its files in the collection, and the columns of its texts."""

    train: str
    test: str | None = None  # None: sampled from the first file
    texts: tuple[str, ...] = ("text",)


PAIR = ("text_a", "text_b")
SOURCES = {
    "mr": Source("all.tsv"),
    "cr": Source("all.tsv"),
    "sst2": Source("train.tsv", "test.tsv"),
    "trec6": Source("train.tsv", "test.tsv"),
    "imdb": Source("train.tsv.gz", "test.tsv.gz"),
    "mrpc": Source("train.tsv", "test.tsv", PAIR),
    "rte": Source("train.tsv", "dev.tsv", PAIR),
}


@dataclass(frozen=True)
class Draw:
    """The number of rows per split, and the length of texts."""

    train: int = 1_000
    validation: int = 300
    test: int = 1_000
    words: int = 64  # first words kept of each text


def table(path: Path) -> tuple[list[str], list[Row]]:
    """Return header and rows of an unquoted TSV file, each row once, sorted by a hash of its content."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    header, *lines = (line.rstrip("\r").split("\t") for line in content.decode("utf-8").rstrip("\n").split("\n"))
    rows = dict.fromkeys(tuple(line) for line in lines)
    return header, sorted(rows, key=lambda row: hashlib.sha256("\t".join(row).encode()).digest())


def rows_of(path: Path, texts: Sequence[str]) -> list[Row]:
    """Return texts and label of each row."""
    header, rows = table(path)
    places = [header.index(name) for name in (*texts, "label")]
    return [tuple(row[place] for place in places) for row in rows]


def cut(row: Row, words: int) -> Row:
    """Return a row with the first words of every text."""
    return (*(" ".join(text.split()[:words]) for text in row[:-1]), row[-1])


def write_once(path: Path, text: str) -> None:
    """Write a file atomically unless it exists: another process may be reading it."""
    if not path.is_file() or path.read_bytes() != text.encode():
        write_text(path, text)


def task(name: str, draw: Draw, data: Path, folder: Path) -> gw.Task:
    """Return the task, its three files written to `folder`. No text of its test split is in another split."""
    source = SOURCES[name]
    first = rows_of(data / name / source.train, source.texts)
    held = rows_of(data / name / source.test, source.texts)[: draw.test] if source.test else first[: draw.test]
    known = {row[:-1] for row in held}
    rest = [row for row in first if row[:-1] not in known]
    train, validation = rest[: draw.train], rest[draw.train : draw.train + draw.validation]
    labels = {row[-1] for row in train}
    splits = {"train": train, "validation": validation, "test": held}
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        kept = [cut(row, draw.words) for row in rows if row[-1] in labels]
        lines = ["\t".join(row) for row in ((*source.texts, "label"), *kept)]
        write_once(folder / f"{split}.tsv", "\n".join(lines) + "\n")
    given = {split: folder / f"{split}.tsv" for split in ("validation", "test")}
    return gw.Task.from_file(folder / "train.tsv", name=name, **given)
