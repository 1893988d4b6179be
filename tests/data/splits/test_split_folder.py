"""Folders of splits: what of a folder is taken for which split, by every reader, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.splits.split_folder import with_split_files
from graftwork.errors import DataError
from graftwork.testing.tiny_media import write_folder

WRITTEN = {
    ".tsv": ("text\tlabel\n", "{text}\t{label}\n"),
    ".csv": ("text,label\n", "{text},{label}\n"),
    ".jsonl": ("", '{{"text": "{text}", "label": "{label}"}}\n'),
}


def put(folder: Path, name: str, rows: int = 4) -> Path:
    """A file of two classes whose texts tell the file's name; gzipped where that says so."""
    folder.mkdir(exist_ok=True)
    header, line = WRITTEN[Path(name.removesuffix(".gz")).suffix]
    lines = [line.format(text=f"row {i} of {name.split('.')[0]}", label="ab"[i % 2]) for i in range(rows)]
    content = (header + "".join(lines)).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [
        ("train.tsv", "dev.tsv", "test.tsv"),
        ("training.csv", "valid.jsonl", "test.tsv.gz"),
        ("Train.jsonl.gz", "val.csv", "TEST.csv"),
        ("train-00000-of-00001.tsv", "validation-00000-of-00001.tsv", "test-00000-of-00001.tsv"),
    ],
)
def test_files_are_the_splits_that_they_are_called_by(tmp_path: Path, train: str, validation: str, test: str) -> None:
    folder = tmp_path / "things"
    files = {"train": put(folder, train, 6), "validation": put(folder, validation), "test": put(folder, test, 2)}
    for other in ("train_10shot.tsv", "untrain.csv"):
        put(folder, other)
    (folder / "train.txt").write_text("no file that is read")
    data = load(Task.from_file(folder))
    assert data.task.name == "things"
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 6,
        "validation": 4,
        "test": 2,
    }
    named = load(Task.from_file(files["train"], validation=files["validation"], test=files["test"]))
    assert data.digest == named.digest


def test_splits_that_are_not_there_are_drawn_and_flags_go_first(tmp_path: Path) -> None:
    put(tmp_path, "train.tsv", 40)
    put(tmp_path, "test.tsv", 6)
    data = load(Task.from_file(tmp_path))
    assert len(data.test.examples) == 6 and "validation 4 rows drawn from train.tsv" in data.report["splits"]
    other = put(tmp_path / "other", "new.tsv", 8)
    assert len(load(Task.from_file(tmp_path, test=other)).test.examples) == 8


def test_folders_are_splits_too(tmp_path: Path) -> None:
    for name, rows in (("train", 4), ("val", 2), ("test", 3)):
        write_folder(tmp_path / name, "image", rows)
    (tmp_path / "notes").mkdir()
    data = load(Task.from_file(tmp_path))
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 8,
        "validation": 4,
        "test": 6,
    }


def test_a_class_may_be_called_like_a_split(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "things", "image", 10)
    (folder / "red").rename(folder / "train")
    assert load(Task.from_file(folder)).task.labels == ("blue", "train")


def test_what_is_not_plain_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "twice", "train.tsv")
    put(tmp_path / "twice", "train.csv")
    put(tmp_path / "parts", "train-00000-of-00002.tsv")
    put(tmp_path / "parts", "train-00001-of-00002.tsv")
    put(tmp_path / "untrained", "dev.tsv")
    for name, what in (("twice", "two files for train"), ("parts", "two files"), ("untrained", "no file called train")):
        with pytest.raises(DataError, match=what) as caught:
            with_split_files(Task.from_file(tmp_path / name))
        assert caught.value.do and caught.value.got


@pytest.mark.parametrize("path", ["..", ".", "../../mood"])
def test_a_folder_is_called_what_it_is_called_wherever_one_stands(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a folder above, too, is not what stands before the first dot of `..`."""
    inner = tmp_path / "mood" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "mood" if path == "." else inner)
    assert Task.from_file(path).name == "mood"
