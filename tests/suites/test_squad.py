"""SQuAD's JSON: a row per question with its answers, none where a question is impossible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.errors import DataError
from graftwork.registry import suites

ANSWER = {"text": "Zürich", "answer_start": 11}


def write(path: Path, *asked: dict[str, Any]) -> Path:
    paragraph = {"context": "He lives in Zürich.", "qas": list(asked)}
    path.write_text(json.dumps({"data": [{"title": "Places", "paragraphs": [paragraph]}]}))
    return path


def test_a_row_per_question(tmp_path: Path) -> None:
    where = {"id": "a", "question": "Where?", "answers": [ANSWER, ANSWER]}
    who = {"id": "b", "question": "Who?", "answers": [], "plausible_answers": [ANSWER], "is_impossible": True}
    write(tmp_path / "train-v2.0.json", where, who)
    tasks = {task.name: task for task in suites.get("squad").tasks(tmp_path)}
    assert [path.name for path in tasks["SQuAD2.0"].missing()] == ["dev-v2.0.json"]
    assert len(tasks["SQuAD1.1"].missing()) == 2
    first, second = tasks["SQuAD2.0"].train.read()
    assert first is not None and second is not None
    assert first["answers"] == {"text": ["Zürich"] * 2, "answer_start": [11, 11]}
    assert (first["title"], first["context"]) == ("Places", "He lives in Zürich.")
    assert second["answers"] == {"text": [], "answer_start": []}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("[]", "the file has no list of articles"),
        ('{"data": 1}', "the file has no list of articles"),
        ('{"data": [{}]}', "the list 'paragraphs' is missing"),
    ],
)
def test_what_is_no_file_of_squad(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "train-v1.1.json"
    path.write_text(content)
    with pytest.raises(DataError, match=what):
        list(suites.get("squad").tasks(tmp_path)[0].train.read())
