"""Folders of `save_to_disk`: one set or several splits, by their path or behind `hub:`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers import hub_datasets
from graftwork.data.readers.table import open_table
from graftwork.errors import DataError

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    hub_datasets._sets.cache_clear()
    yield
    hub_datasets._sets.cache_clear()


def rows(count: int, word: str, labelled: bool = True) -> Any:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    listed = [{"text": f"thing {i} {word}", "label": i % 2 if labelled else -1} for i in range(count)]
    return datasets.Dataset.from_list(listed, features=features)


@pytest.mark.parametrize("scheme", ["", "hub:"])
def test_one_set_keeps_the_names_of_its_classes(tmp_path: Path, scheme: str) -> None:
    rows(40, "x").save_to_disk(tmp_path / "one", num_shards=3)
    data = load(Task.from_file(f"{scheme}{tmp_path / 'one'}"))
    assert data.task.name == "one" and data.task.labels == ("neg", "pos")
    assert sum(len(split.examples) for split in data.splits.values()) == 40


@pytest.mark.parametrize("scheme", ["", "hub:"])
def test_several_are_the_splits(tmp_path: Path, scheme: str) -> None:
    splits = {"train": rows(40, "x"), "validation": rows(8, "y"), "test": rows(16, "z")}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "dict")
    data = load(Task.from_file(f"{scheme}{tmp_path / 'dict'}"))
    assert data.task.labels == ("neg", "pos")
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 40, "validation": 8, "test": 16,
    }  # fmt: skip


@pytest.mark.parametrize("scheme", ["", "hub:"])
def test_a_split_without_labels_is_drawn_and_nothing_is_written(tmp_path: Path, scheme: str) -> None:
    splits = {"train": rows(40, "x"), "test": rows(16, "z", labelled=False)}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "dict")
    before = sorted(tmp_path.rglob("*"))
    data = load(Task.from_file(f"{scheme}{tmp_path / 'dict'}"))
    assert len(data.test.examples) == 8 and sorted(tmp_path.rglob("*")) == before


def test_a_saved_format_and_a_selection_change_nothing(tmp_path: Path) -> None:
    chosen = rows(40, "x").select(range(0, 40, 2)).with_format("numpy")
    chosen.save_to_disk(tmp_path / "one")
    found = [row.cells for row in open_table(tmp_path / "one").rows(["text", "label"], label="label")]
    assert found == [(f"thing {i} x", "neg") for i in range(0, 40, 2)]


def test_splits_without_a_train_are_told_by_name(tmp_path: Path) -> None:
    datasets.DatasetDict({"all": rows(4, "x"), "rest": rows(4, "y")}).save_to_disk(tmp_path / "dict")
    with pytest.raises(DataError, match="none of them called train") as caught:
        load(Task.from_file(tmp_path / "dict"))
    assert caught.value.got == "'all, rest'" and str(tmp_path / "dict" / "all") in caught.value.do
    with pytest.raises(DataError, match="no split called train"):
        load(Task.from_file(f"hub:{tmp_path / 'dict'}"))
    assert len(list(open_table(tmp_path / "dict" / "all").rows(["text"]))) == 4


def test_a_damaged_folder_and_names_that_lead_out_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    rows(4, "x").save_to_disk(folder)
    (part,) = folder.glob("*.arrow")
    state = json.loads((folder / "state.json").read_text())
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged or incomplete"):
        open_table(folder)
    part.write_bytes(whole)
    part.rename(tmp_path / part.name)
    with pytest.raises(DataError, match="damaged or incomplete"):
        open_table(folder)
    (folder / "state.json").write_text(json.dumps(state | {"_data_files": [{"filename": f"../{part.name}"}]}))
    with pytest.raises(DataError, match="damaged or incomplete"):
        open_table(folder)
    (folder / "state.json").write_text("{")
    with pytest.raises(DataError, match="the file is not valid JSON"):
        open_table(folder)
