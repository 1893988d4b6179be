"""Files of texts and of what is to be written of them: columns by name, references, parallel files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError


def write(folder: Path, header: str, rows: int = 20) -> Path:
    """A CSV with these columns; a cell is its column's name and the number of its row."""
    path, names = folder / "t.csv", header.split(",")
    lines = [",".join(f"{name} {row}" for name in names) for row in range(rows)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(path: Path, **flags: Any) -> Dataset:
    return load(Task.from_file(path, kind="generation", **flags))


@pytest.mark.parametrize(
    ("header", "inputs", "target"),
    [
        ("package,source,target", ["source"], "target"),
        ("text,summary,label", ["text"], "summary"),
        ("text,label", ["text"], "label"),
        ("id,article,highlights", ["article"], "highlights"),
        ("question,context,answer", ["question", "context"], "answer"),
        ("question,answer", ["question"], "answer"),
        ("instruction,input,output", ["instruction", "input"], "output"),
        ("prompt,completion", ["prompt"], "completion"),
    ],
)
def test_columns_are_found_by_their_names(tmp_path: Path, header: str, inputs: list[str], target: str) -> None:
    data = read(write(tmp_path, header))
    row = data.train.examples[0]
    assert [given.rsplit(" ", 1)[0] for given in row.inputs.values()] == inputs
    assert row.target == (f"{target} {row.inputs[next(iter(row.inputs))].rsplit(' ', 1)[1]}",)
    assert f"The network reads {' and '.join(inputs)} and learns to write {target}." in data.report["splits"]


def test_a_missing_header_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("".join(f"the house has {row} doors\tdas Haus hat {row} Tore\n" for row in range(20)))
    with pytest.raises(DataError, match="usual names of a text and its target") as caught:
        read(path)
    assert caught.value.do == "the first line looks like a row: put a header above it, such as source and target"


def test_what_is_told_goes_first(tmp_path: Path) -> None:
    path = write(tmp_path, "source,target,note")
    back = read(path, text="target", label="source").task
    assert (back.text, back.label) == ("target", "source")
    assert read(path, text="note", label="target").task.text == "note"
    assert read(path, text="note").task.label == "target"
    assert read(path, label="note").task.text == "source"
    with pytest.raises(DataError, match="text is 'note'"):
        read(write(tmp_path, "note,other"), text="note")


def test_no_usual_names_and_too_many_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no columns, or several, have the usual names") as refused:
        read(write(tmp_path, "a,b"))
    assert "columns: a, b" in refused.value.got and "--label A,B" in refused.value.do
    with pytest.raises(DataError, match="more than one pair") as refused:
        read(write(tmp_path, "source,target,article,highlights"))
    assert refused.value.got == "source -> target; article -> highlights"
    with pytest.raises(ConfigError, match="no column 'targt'"):
        read(write(tmp_path, "source,target"), label="targt", text="source")


def test_references_may_be_several(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"source": f"s {row}", "references": ["one", "two"][: 1 + row % 2]} for row in range(20)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = read(path)
    assert {row.target for row in data.train.examples} == {("one",), ("one", "two")}
    assert any("References of a row: 1-2 of train" in told for told in data.report["warnings"])
    columns = write(tmp_path, "source,one,two")
    columns.write_text(columns.read_text().replace("two 3\n", "\n"))
    targets = [row.target for row in read(columns, label="one,two").train.examples]
    assert ("one 4", "two 4") in targets and any(len(target) == 1 for target in targets)
    columns.write_text(columns.read_text().replace("one 5", " "))
    with pytest.raises(DataError, match=r"t.csv:7: the first reference is empty"):
        read(columns, label="one,two")
    assert len(read(columns, label="one,two", rejects=str(tmp_path / "bad.jsonl")).report["rejected"]) == 1


def parallel(folder: Path, names: Sequence[str], lines: int = 20) -> Path:
    for name in names:
        text = "".join(f"{name.split('.')[1]} {row}\n" for row in range(lines))
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


def test_parallel_files_are_read_line_by_line(tmp_path: Path) -> None:
    folder = parallel(tmp_path, ["train.en.gz", "train.de.gz", "val.en", "val.de"])
    with pytest.raises(DataError, match="nothing says which is to be written") as refused:
        read(folder)
    assert "--text de --label en, or --text en --label de" in refused.value.do
    data = read(folder, text="en", label="de")
    assert len(data.validation.examples) == 20 and "lines of val.de and val.en" in data.report["splits"]
    row = data.validation.examples[3]
    assert (row.inputs["text"], row.target) == ("en 3", ("de 3",))
    assert read(folder / "val.en", text="de", label="en").train.examples[0].inputs["text"].startswith("de ")
    (folder / "val.de").write_text("only one\n")
    with pytest.raises(DataError, match="different numbers of lines") as refused:
        read(folder, text="en", label="de")
    assert refused.value.got == "val.de: 1 line, val.en: 20 lines"


def test_sides_may_say_which_is_which(tmp_path: Path) -> None:
    assert read(parallel(tmp_path, ["train.source", "train.target"])).task.label == "target"


def test_scripts_beside_data_are_no_languages(tmp_path: Path) -> None:
    write(tmp_path, "source,target").rename(tmp_path / "train.csv")
    parallel(tmp_path, ["train.py", "train.sh"])
    assert read(tmp_path).task.data.name == "train.csv"


def test_another_kind_is_told_of_this_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'text'") as refused:
        load(Task.from_file(write(tmp_path, "source,target")))
    assert "to write target, a text, of source: --kind generation" in refused.value.do
