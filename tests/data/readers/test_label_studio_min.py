"""Label Studio's JSON_MIN: a flat object for each task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers.table import open_table
from graftwork.errors import DataError

ABOUT = {"annotator": 1, "annotation_id": 5, "created_at": "2026", "updated_at": "2026", "lead_time": 2.5}


def written(path: Path, *items: dict[str, Any]) -> Path:
    path.write_text(json.dumps([{"id": at, **item, **ABOUT} for at, item in enumerate(items, 1)]))
    return path


def rows(path: Path, *columns: str, label: str = "label") -> list[tuple[Any, ...]]:
    return [row.cells for row in open_table(path).rows(columns, label=label)]


def span(start: int, end: int, label: str, text: str) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, "labels": [label]}


def test_choices_and_numbers(tmp_path: Path) -> None:
    items = [
        {"text": "a b", "mood": "good", "topics": {"choices": ["x", "y"]}, "stars": 4},
        {"text": "c d", "mood": "bad", "topics": {"choices": []}},
    ]
    path = written(tmp_path / "a.json", *items)
    assert open_table(path).header == ("text", "mood", "topics", "stars")
    assert rows(path, "text", "mood", "topics", "stars") == [("a b", "good", ("x", "y"), "4"), ("c d", "bad", (), ())]


def test_spans(tmp_path: Path) -> None:
    items = {"text": "Ann lost it", "ner": [span(0, 3, "PER", "Ann")]}, {"text": "My card"}
    path = written(tmp_path / "a.json", *items)
    assert open_table(path).header == ("text", "tokens", "tags")
    assert rows(path, "tokens", "tags", label="tags") == [
        (("Ann", "lost", "it"), ("B-PER", "O", "O")),
        (("My", "card"), ("O", "O")),
    ]
    wrong = written(tmp_path / "b.json", {"text": "Ann lost it", "ner": [span(0, 3, "PER", "nn ")]})
    with pytest.raises(DataError, match="not the one at its offsets") as caught:
        rows(wrong, "tags", label="tags")
    assert caught.value.where == f"{wrong}: [0] (task 1)"


def test_several_annotators(tmp_path: Path) -> None:
    def by(number: int, mood: str) -> dict[str, Any]:
        return {"id": 1, "text": "a", "mood": mood, **ABOUT, "annotator": number}

    path = tmp_path / "a.json"
    path.write_text(json.dumps([by(1, "good"), by(2, "good")]))
    assert rows(path, "mood") == [("good",)]
    path.write_text(json.dumps([by(1, "good"), by(2, "bad")]))
    with pytest.raises(DataError, match="different answers"):
        rows(path, "mood")


def test_a_task_of_its_choices(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", *({"text": f"text {i}", "mood": "xy"[i % 2]} for i in range(30)))
    data = load(Task.from_file(path, label="mood"))
    assert data.task.labels == ("x", "y") and "from a.json (JSON_MIN of Label Studio)" in data.report["splits"]
    tagged = written(
        tmp_path / "b.json", *({"text": f"Ann lost {i}", "ner": [span(0, 3, "PER", "Ann")]} for i in range(30))
    )
    assert load(Task.from_file(tagged, kind="tagging")).task.labels == ("B-PER", "O")


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"text": "a", "mood": {"x": 1}}, "neither a text, a number nor choices"),
        (
            {"text": "a", "mood": "x", "one": [span(0, 1, "A", "a")], "two": [span(0, 1, "A", "a")]},
            "more than one question",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, item: dict[str, Any], what: str) -> None:
    path = written(tmp_path / "a.json", {"text": "b", "mood": "y"}, item)
    with pytest.raises(DataError, match=what) as caught:
        rows(path, "mood", *({"tags"} & set(open_table(path).header)))
    assert caught.value.where == f"{path}: [1] (task 2)"


def test_long_first_tasks_are_recognised_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", {"text": "a " * 100_000, "mood": "x"})
    assert open_table(path).header == ("text", "mood")
