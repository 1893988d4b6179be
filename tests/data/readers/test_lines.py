"""A file is opened once, whatever is looked at before its rows are read; its lines are the same every time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers import lines
from graftwork.data.readers.lines import MOST_KEPT, TextLines
from graftwork.errors import DataError

ROWS = [(f"film number {i}", "pos" if i % 2 else "neg") for i in range(MOST_KEPT + 50)]


def jsonl(row: Callable[[str, str], Any]) -> str:
    return "".join(f"{json.dumps(row(text, label))}\n" for text, label in ROWS)


def table(mark: str) -> str:
    return "".join(f"{text}{mark}{label}\n" for text, label in [("text", "label"), *ROWS])


def as_json(row: Callable[[str, str], Any]) -> str:
    return json.dumps([row(text, label) for text, label in ROWS])


def task_of_studio(text: str, label: str) -> dict[str, Any]:
    result = {"type": "choices", "from_name": "mood", "value": {"choices": [label]}}
    return {"id": text, "data": {"text": text}, "annotations": [{"result": [result]}]}


FILES = {
    "a.csv": table(","),
    "semicolons.csv": table(";"),
    "a.tsv": table("\t"),
    "a.jsonl": jsonl(lambda text, label: {"text": text, "label": label}),
    "prodigy.jsonl": jsonl(lambda text, label: {"text": text, "label": label, "answer": "accept", "_task_hash": 1}),
    "spacy.jsonl": jsonl(lambda text, label: [text, {"cats": {label: 1}}]),
    "spacy.json": as_json(lambda text, label: [text, {"cats": {label: 1}}]),
    "studio.json": as_json(task_of_studio),
    "min.json": as_json(lambda text, label: {"id": text, "text": text, "label": label, "annotator": 1}),
    "a.train": "".join(f"__label__{label} {text}\n" for text, label in ROWS),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_opened_once_and_every_format_gives_the_same_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(FILES[name])
    opened: list[Path] = []
    real = lines.open_unpacked
    monkeypatch.setattr(lines, "open_unpacked", lambda path: opened.append(path) or real(path))
    data = load(Task("t", tmp_path / name), checked=False)
    assert opened == [tmp_path / name]
    found = {(example.inputs["text"], example.target) for split in data.splits.values() for example in split.examples}
    assert found == set(ROWS)


@pytest.mark.parametrize("count", [3, MOST_KEPT, MOST_KEPT + 1, 2 * MOST_KEPT])
def test_lines_are_the_same_however_far_they_were_read(count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {number}\n" for number in range(count)))
    whole = [(number + 1, f"line {number}\n") for number in range(count)]
    found = TextLines(path)
    first = iter(found)
    assert next(first) == whole[0] and list(found) == whole == list(found)
    assert list(first) == whole[1:]


def test_a_file_that_breaks_off_does_so_every_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("".join(f"line {number * 7919}\n" for number in range(5000)).encode())[:-2000])
    found = TextLines(path)
    for _ in range(2):
        with pytest.raises(DataError, match="not a whole gzip file"):
            list(found)
