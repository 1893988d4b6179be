"""A GLUE folder as its download script leaves it, of any rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Rows = Sequence[Mapping[str, str]]  # text, or text_a and text_b; and label

HEADERS = {  # of the labelled files; a test file has index (QQP: id) first and no label
    "SST-2": ("sentence", "label"),
    "MRPC": ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
    "STS-B": ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2",
              "score"),
    "QQP": ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
    "MNLI": ("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
             "sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "label1", "gold_label"),
    "QNLI": ("index", "question", "sentence", "label"),
    "RTE": ("index", "sentence1", "sentence2", "label"),
    "WNLI": ("index", "sentence1", "sentence2", "label"),
}  # fmt: skip
INPUTS = {
    "text": ("sentence",),
    "text_a": ("sentence1", "question1", "#1 String", "question"),
    "text_b": ("sentence2", "question2", "#2 String", "sentence"),
}
LABELS = ("label", "Quality", "score", "is_duplicate", "gold_label")


def write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def cell(column: str, row: Mapping[str, str], number: int) -> str:
    """What stands in a column: an input, the label, or the number of the row."""
    if column in LABELS:
        return row["label"]
    for role, columns in INPUTS.items():
        if role in row and column in columns:
            return row[role]
    return str(number)


def sheet(name: str, rows: Rows, labelled: bool) -> list[str]:
    """The lines of an official file."""
    if name == "CoLA" and labelled:
        return [f"gj04\t{row['label']}\t{'' if row['label'] == '1' else '*'}\t{row['text']}" for row in rows]
    header = HEADERS.get(name, ("sentence",))
    if not labelled:
        shown = [column for column in header if column not in LABELS]
        header = tuple(shown) if shown[0] in ("index", "id") else ("index", *shown)
    return ["\t".join(header)] + ["\t".join(cell(column, row, i) for column in header) for i, row in enumerate(rows)]


@pytest.fixture
def official(tmp_path: Path) -> Callable[..., Path]:
    """`official("CoLA", train=…, dev=…, test=…)` writes the files of a task; returns the whole folder."""
    folder = tmp_path / "glue_data"

    def put(name: str, **splits: Any) -> Path:
        for split, rows in splits.items():
            write(folder / name / f"{split}.tsv", sheet(name, rows, not split.startswith("test")))
        return folder

    return put
