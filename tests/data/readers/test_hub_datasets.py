"""Sets of the `datasets` library, from a local folder: splits, names of classes, hidden labels, and what is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers import hub_datasets
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, StorageError, UnknownName
from graftwork.pretrained.download_policy import kept_only

datasets = pytest.importorskip("datasets")

NAMES = ["bad", "good"]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Every test opens its sets anew, in a cache of its own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    hub_datasets._sets.cache_clear()
    yield
    hub_datasets._sets.cache_clear()


def put(folder: Path, split: str, labels: list[int], **more: Any) -> Path:
    """A split as Parquet with its classes named, as sets of the hub are."""
    folder.mkdir(exist_ok=True)
    columns = {"sentence": [f"it is {max(0, label)} {i} {split}" for i, label in enumerate(labels)], "label": labels}
    rows = datasets.Dataset.from_dict(columns | more)
    rows.cast_column("label", datasets.ClassLabel(names=NAMES)).to_parquet(folder / f"{split}.parquet")
    return folder


def test_its_own_splits_and_the_names_of_its_classes(tmp_path: Path) -> None:
    folder = put(tmp_path / "set", "train", [0, 1] * 20)
    put(folder, "validation", [0, 1] * 3)
    put(folder, "test", [-1] * 6)
    data = load(Task.from_file(f"hub:{folder}"))
    assert data.task.name == "set"
    assert data.task.labels == ("bad", "good")
    assert len(data.validation.examples) == 6
    assert data.validation.examples[1].inputs["text"] == "it is 1 1 validation"
    assert len(data.test.examples) == 8, "its test split has no labels: one is drawn"
    assert "drawn from" in data.report["splits"]


def test_a_split_may_be_named(tmp_path: Path) -> None:
    folder = put(tmp_path / "set", "train", [0, 1] * 20)
    put(folder, "validation", [0, 1] * 3)
    data = load(Task.from_file(f"hub:{folder}", test=f"hub:{folder}:default:validation", validation=None))
    assert len(data.test.examples) == 6
    assert len(list(open_table(Path(f"hub:{folder}:default")).rows(["sentence"]))) == 40
    with pytest.raises(UnknownName, match="did you mean 'validation'"):
        open_table(Path(f"hub:{folder}:default:validatio"))
    with pytest.raises(ConfigError, match="the name is not one of a hub data set"):
        open_table(Path("hub:a:b:c:d"))


def test_a_row_without_its_label(tmp_path: Path) -> None:
    folder = put(tmp_path / "set", "train", [0, 1, -1])
    with pytest.raises(DataError, match="the label is not published") as caught:
        list(open_table(Path(f"hub:{folder}")).rows(("sentence", "label"), label="label"))
    assert caught.value.where == f"hub:{folder}:3"


def test_lists_of_words_and_of_classes(tmp_path: Path) -> None:
    tags = datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"]))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": tags})
    (tmp_path / "ner").mkdir()
    rows = datasets.Dataset.from_dict({"tokens": [["Ann", "left"]], "ner_tags": [[1, 0]]}, features=features)
    rows.to_parquet(tmp_path / "ner" / "train.parquet")
    table = open_table(Path(f"hub:{tmp_path / 'ner'}"))
    assert next(table.rows(("tokens", "ner_tags"), label="ner_tags", words="tokens")).cells == (
        ("Ann", "left"),
        ("B-PER", "O"),
    )


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="the data set cannot be loaded"):
        open_table(Path(f"hub:{tmp_path / 'nowhere'}"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    with kept_only(), pytest.raises(StorageError, match=r"starts no download[\s\S]*graft data hub:a/b:cola;") as caught:
        open_table(Path("hub:a/b:cola"))
    assert caught.value.where == "hub:a/b:cola"
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install .graftwork\[hub\]."):
        open_table(Path(f"hub:{tmp_path}"))
