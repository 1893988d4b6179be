"""The rows of `beside_trainer.py`: drawn once by a hash of their texts, and written for every system to read."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "many_tasks"))  # before the `run` beside this file

from run import rows_of

TEXTS = ("text", "text_a", "text_b")
SETS = (
    "cr", "mr", "sst2", "sst5", "trec50", "clinc150", "ag_news", "tweet_stance_atheism", "sick_nli", "rte", "snli",
    "debian_sections",
)  # fmt: skip
FILES = {  # where they are not train, dev, test
    "debian_sections": ("en_train", "en_dev", "en_test"),
    "snli": ("dev", "", "test"),
    "mnli_sample": ("dev_matched", "", "dev_mismatched"),
    "qnli": ("dev", "", ""),
}
VALIDATION_ROWS = 1000  # at most, and at most a quarter of the rows allowed for train

Row = dict[str, str]


@dataclass(frozen=True)
class Drawn:
    """The drawn rows of a data set, in files."""

    name: str
    files: Mapping[str, Path]  # train, validation and test
    rows: Mapping[str, int]
    classes: int
    words: float  # mean words of a row of train
    digest: str  # digest of the files


def texts_of(row: Row) -> tuple[str, ...]:
    """Return the texts in lower case with single spaces, the key for duplicate rows."""
    return tuple(" ".join(row[column].lower().split()) for column in TEXTS if column in row)


def number_of(text: str) -> int:
    """Return a pseudo-random number that depends only on the text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def once(rows: list[Row], taken: set[tuple[str, ...]]) -> list[Row]:
    """Return the rows whose texts are not in `taken`, each text once; adds them to `taken`."""
    kept = []
    for row in rows:
        if texts_of(row) not in taken:
            taken.add(texts_of(row))
            kept.append(row)
    return kept


def splits_of(folder: Path, train_rows: int, test_rows: int) -> dict[str, list[Row]]:
    """Return train, validation and test of a data set, at most so many rows of each, in hash order.

    The published test is the test; if its labels are hidden or there is none, dev is; without either, a fifth of all
    rows is drawn. If no dev remains, an eighth of train is drawn as validation. Rows are drawn by their first text, so
    so that a premise with several hypotheses is in one split. No text is in two splits or twice in one; a label without
    a row in train is dropped.
    """
    names = FILES.get(folder.name, ("train", "dev", "test"))
    train, dev, test = (rows_of(folder, name) if name else [] for name in names)
    train = train or rows_of(folder, "all")
    if not test and dev:
        test, dev = dev, []
    if not test:
        test = [row for row in train if number_of(texts_of(row)[0]) % 5 == 0]
    tested = {texts_of(row) for row in test}
    if not dev:
        dev = [row for row in train if number_of(texts_of(row)[0]) // 5 % 8 == 0]
        dev = [row for row in dev if texts_of(row) not in tested]
    limits = {"test": test_rows, "validation": min(VALIDATION_ROWS, max(50, train_rows // 4)), "train": train_rows}
    taken: set[tuple[str, ...]] = set()
    drawn = {}
    for name, rows in (("test", test), ("validation", dev), ("train", train)):
        ordered = sorted(once(rows, taken), key=lambda row: number_of("\t".join(texts_of(row))))
        drawn[name] = ordered[: limits[name]]
    known = {row["label"] for row in drawn["train"]}
    return {name: [row for row in rows if row["label"] in known] for name, rows in drawn.items()}


def as_tsv(rows: list[Row]) -> bytes:
    """Return rows as the content of a TSV file: one header line, never quoted."""
    columns = [column for column in (*TEXTS, "label") if column in rows[0]]
    lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def written(folder: Path, work: Path, train_rows: int, test_rows: int) -> Drawn:
    """Write the rows of a data set to `work` as train.tsv, validation.tsv and test.tsv."""
    splits = splits_of(folder, train_rows, test_rows)
    files, hashed = {}, hashlib.sha256()
    for split, rows in splits.items():
        content = as_tsv(rows)
        files[split] = work / folder.name / f"{split}.tsv"
        files[split].parent.mkdir(parents=True, exist_ok=True)
        files[split].write_bytes(content)
        hashed.update(content)
    train = splits["train"]
    return Drawn(
        folder.name,
        files,
        {name: len(rows) for name, rows in splits.items()},
        len({row["label"] for row in train}),
        sum(len(" ".join(texts_of(row)).split()) for row in train) / len(train),
        hashed.hexdigest(),
    )
