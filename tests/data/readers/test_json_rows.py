"""Files that are one JSON list of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import DataError


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "t.json"
    path.write_text(json.dumps(rows, indent=2))
    return path


def test_a_list_of_rows_is_read_like_a_line_for_each(tmp_path: Path) -> None:
    rows: list[Any] = [{"id": row, "text": f"text {row}", "label": row % 2} for row in range(20)]
    path = written(tmp_path, rows)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, lines = (load(Task.from_file(tmp_path / name)) for name in ("t.json", "t.jsonl"))
    assert found.train.examples == lines.train.examples and found.task.labels == ("0", "1")
    for bad, what in (
        (3, r"t.json: \[20\]: the item is not an object"),
        ({"id": 7, "text": "a"}, r"t.json: \[20\] \(task 7\): the key 'label' is missing"),
        ({"text": None, "label": 1}, r"t.json: \[20\]: the value of 'text' is null"),
    ):
        with pytest.raises(DataError, match=what):
            load(Task.from_file(written(tmp_path, [*rows, bad])))
        rejects = str(tmp_path / "bad.jsonl")
        assert load(Task.from_file(path, rejects=rejects)).report["rejected"] == {"train": 1}


def test_choices_words_and_questions_are_read_from_lists_too(tmp_path: Path) -> None:
    choices = [{"text": f"t {row}", "choices": ["a", f"b {row}"], "label": row % 2} for row in range(20)]
    assert load(Task.from_file(written(tmp_path, choices), kind="choice")).train.examples[0].inputs["choices"][0] == "a"
    words = [{"tokens": ["a", f"b{row}"], "tags": ["O", "B-X"]} for row in range(20)]
    assert load(Task.from_file(written(tmp_path, words), kind="tagging")).train.examples[0].target == ("O", "B-X")
    answer = {"text": ["it"], "answer_start": [0]}
    questions = [
        {"id": row, "question": f"Which {row}?", "context": f"it is {row}", "answers": answer} for row in range(20)
    ]
    assert load(Task.from_file(written(tmp_path, questions), kind="span")).train.examples


def test_the_first_row_may_be_bad(tmp_path: Path) -> None:
    rows: list[Any] = [3, *({"text": f"text {row}", "label": row % 2} for row in range(20))]
    found = load(Task.from_file(written(tmp_path, rows), rejects=str(tmp_path / "bad.jsonl")))
    assert found.report["rejected"] == {"train": 1}
    with pytest.raises(DataError, match=r"t.json: \[0\]: the item is not an object"):
        load(Task.from_file(written(tmp_path, [3, "a"])))
    rows[1] = {"text": "a", "label": 0, "data": "a column may be called so"}
    load(Task.from_file(written(tmp_path, rows[1:])))
