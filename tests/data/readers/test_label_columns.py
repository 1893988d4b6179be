"""A column for each label: however 0 and 1 are written, the labels of a row are the columns with 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError

NAMES = ("toxic", "obscene", "insult")
ROWS = [(f"text {i}", (i % 2 == 0, i % 3 == 0, i % 5 == 0)) for i in range(60)]
TRUE_AND_FALSE = [("1", "0"), ("1.0", "0.0"), ("true", "false"), ("TRUE", "FALSE"), ("yes", "no"), ("Y", "n")]


def table(folder: Path, marks: tuple[str, str] = ("1", "0"), names: tuple[str, ...] = NAMES, **more: str) -> Path:
    """Jigsaw's layout, with further columns of one value each."""
    path = folder / "t.csv"
    lines = [",".join(["id", "text", *more, *names])]
    for number, (text, held) in enumerate(ROWS):
        lines.append(",".join([str(number), text, *more.values(), *(marks[not one] for one in held)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path, kind: str = "multilabel", **flags: Any) -> Dataset:
    return load(Task.from_file(path, kind=kind, **flags))


def targets(data: Dataset) -> dict[str, Any]:
    return {example.inputs["text"]: example.target for split in data.splits.values() for example in split.examples}


EXPECTED = {text: tuple(sorted(name for name, one in zip(NAMES, held, strict=True) if one)) for text, held in ROWS}


@pytest.mark.parametrize("marks", TRUE_AND_FALSE)
def test_marks_however_written(tmp_path: Path, marks: tuple[str, str]) -> None:
    path = table(tmp_path, marks)
    for label in ("toxic,obscene,insult", "toxic, obscene, insult", ["toxic", "obscene", "insult"], None):
        data = read(path, label=label)
        assert targets(data) == EXPECTED
        assert data.task.labels == ("insult", "obscene", "toxic")
        assert data.task.label == "toxic,obscene,insult"
        assert "The labels are columns, with 1 in the rows where each holds: toxic, obscene" in data.report["splits"]
    assert {target for row in targets(read(path, label="toxic,insult")).values() for target in row} == {
        "toxic",
        "insult",
    }


def test_jsonl_and_parquet_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for true, false in ((1, 0), (1.0, 0.0), (True, False), ("yes", "no")):
        rows = [{"text": t} | {n: true if h else false for n, h in zip(NAMES, held, strict=True)} for t, held in ROWS]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert targets(read(path)) == EXPECTED
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert targets(read(tmp_path / "t.parquet")) == EXPECTED


def test_labels_are_found_only_where_they_are_certain(tmp_path: Path) -> None:
    prefixed = tuple(f"label_{name}" for name in NAMES)
    data = read(table(tmp_path, names=prefixed, source="web", verified="1"))
    assert data.task.labels == tuple(sorted(prefixed))
    with pytest.raises(DataError, match="no column 'label'") as caught:
        read(table(tmp_path, source="web"))
    assert "--label toxic,obscene,insult" in caught.value.do
    assert targets(read(table(tmp_path, source="web"), label="toxic,obscene,insult")) == EXPECTED
    plain = table(tmp_path, label="x")
    assert {target for row in targets(read(plain)).values() for target in row} == {"x"}, "a column label goes before"
    with pytest.raises(ConfigError, match="no column 'obscen'"):
        read(table(tmp_path), label="toxic,obscen")
    with pytest.raises(ConfigError, match="label are the same column, 'toxic'"):
        read(table(tmp_path), label="toxic,toxic")


def test_one_label_of_each_row_is_its_class(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"text {i},{int(i % 2 == 0)}.0,{int(i % 2 == 1)}.0" for i in range(20)]
    path.write_text("\n".join(["text,MEL,NV", *lines]) + "\n")
    data = read(path, "classification")
    assert targets(data) == {f"text {i}": ("MEL", "NV")[i % 2] for i in range(20)}
    assert targets(read(path, "classification", label="MEL,NV")) == targets(data)
    with pytest.raises(DataError, match="a list of labels, but in a classification an example has one") as caught:
        read(table(tmp_path), "classification")
    assert "--kind multilabel" in caught.value.do


@pytest.mark.parametrize(
    ("mark", "do"), [("-1", "--rejects FILE"), ("0.4", "a share"), ("", "mend the row"), ("2", "mend the row")]
)
def test_what_is_no_mark(tmp_path: Path, mark: str, do: str) -> None:
    path = table(tmp_path)
    path.write_text(path.read_text() + f"60,text 60,0,0,{mark}\n")
    with pytest.raises(DataError, match="neither 0 nor 1 is in the column of the label 'insult'") as caught:
        read(path, label="toxic,obscene,insult")
    assert caught.value.where == f"{path}:62" and do in caught.value.do
    rejects = str(tmp_path / "bad.jsonl")
    assert targets(read(path, label="toxic,obscene,insult", rejects=rejects)) == EXPECTED


def test_other_splits_have_the_columns_too(tmp_path: Path) -> None:
    path, other = table(tmp_path), tmp_path / "test.csv"
    other.write_text("text,toxic,obscene,insult\nnew,0,1,0\n")
    assert [example.target for example in read(path, test=other).test.examples] == [("obscene",)]
    other.write_text("text,toxic,obscene\nnew,0,1\n")
    with pytest.raises(DataError, match="no column 'insult'"):
        read(path, test=other)
