"""fastText's lines: labels by their prefix, whatever the file is called."""

from __future__ import annotations

import bz2
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers.table import open_table
from graftwork.errors import DataError


def rows(path: Path) -> list[tuple[Any, ...]]:
    return [row.cells for row in open_table(path).rows(("text", "label"), label="label")]


@pytest.mark.parametrize("name", ["cooking.train", "cooking.valid", "train.txt", "data"])
def test_labels_and_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(
        b"\xef\xbb\xbf\nMy card, is  lost __label__a|b\r\n\n"
        b"__label__b\t__label__c __label__b Ann lost it\n"
        b"It is not a__label__d at all __label__e\n"
    )
    assert rows(path) == [
        ("My card, is  lost", ("a|b",)),
        ("Ann lost it", ("b", "c")),
        ("It is not a__label__d at all", ("e",)),
    ]


def test_packed(tmp_path: Path) -> None:
    path = tmp_path / "train.ft.txt.bz2"
    path.write_bytes(bz2.compress(b"__label__2 good\n__label__1 bad\n"))
    assert rows(path) == [("good", ("2",)), ("bad", ("1",))]


def test_a_task_of_one_label_or_of_several(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"__label__{'ab'[i % 2]} text {i}\n" for i in range(30)))
    data = load(Task.from_file(path))
    assert data.task.labels == ("a", "b") and "from a.txt (lines of fastText)" in data.report["splits"]
    path.write_text("".join(f"__label__{'ab'[i % 2]} __label__c{i % 3} text {i}\n" for i in range(30)))
    assert load(Task.from_file(path, kind="multilabel")).task.labels == ("a", "b", "c0", "c1", "c2")
    with pytest.raises(DataError, match="a list of labels, but in a classification an example has one"):
        load(Task.from_file(path))


@pytest.mark.parametrize(
    ("line", "what"), [("no label", "the line has no label"), ("__label__ x", "a label has no name")]
)
def test_a_line_that_has_none(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"__label__a x\n{line}\n")
    with pytest.raises(DataError, match=what) as caught:
        rows(path)
    assert caught.value.where == f"{path}:2"


def test_other_texts_stay_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\tb\n__label__a x\n")
    with pytest.raises(DataError, match=r"unknown suffix '.txt'"):
        open_table(path)
    table = tmp_path / "a.csv"
    table.write_text("__label__,b\nx,y\n")
    assert open_table(table).header == ("__label__", "b"), "a suffix that says what a file is is believed"


def test_a_folder_of_splits(tmp_path: Path) -> None:
    for name, count in (("train.txt", 30), ("valid.txt", 6), ("test.txt.bz2", 8)):
        lines = "".join(f"__label__{'ab'[i % 2]} {name} {i}\n" for i in range(count)).encode()
        (tmp_path / name).write_bytes(bz2.compress(lines) if name.endswith("bz2") else lines)
    data = load(Task.from_file(tmp_path))
    assert [len(split.examples) for split in data.splits.values()] == [30, 6, 8]
    (tmp_path / "train.txt").write_bytes(bytes(100_000))
    with pytest.raises(DataError, match="the folder has no file called train"):
        load(Task.from_file(tmp_path))
