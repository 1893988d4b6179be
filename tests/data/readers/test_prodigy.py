"""Prodigy's answers: labels accepted and rejected, options, spans, and what was left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers.table import open_table
from graftwork.errors import DataError, GraftworkError


def written(path: Path, *items: dict[str, Any], **more: Any) -> Path:
    told = [{**item, "_input_hash": 1, "_task_hash": at, **more} for at, item in enumerate(items)]
    path.write_text("".join(f"{json.dumps(item)}\n" for item in told))
    return path


def answer(text: str, label: str, said: str = "accept") -> dict[str, Any]:
    return {"text": text, "label": label, "answer": said}


def rows(path: Path, *columns: str, label: str = "label") -> list[tuple[Any, ...]]:
    return [row.cells for row in open_table(path).rows(columns, label=label)]


def refusal(path: Path) -> GraftworkError:
    with pytest.raises(GraftworkError) as caught:
        rows(path, *open_table(path).header)
    return caught.value


def test_one_label_is_accepted_or_rejected(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", answer("a", "X"), answer("b", "X", "reject"), answer("c", "X", "ignore"))
    assert open_table(path).header == ("text", "label")
    assert rows(path, "text", "label") == [("a", ("X",)), ("b", ("not X",))]


def test_several_labels_of_a_text_are_one_row(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        *(answer("a", "X", "reject"), answer("b", "X"), answer("a", "Y"), answer("b", "Y")),
        *(answer("c", "X", "reject"), answer("c", "Y", "reject")),
    )
    assert rows(path, "text", "label") == [("a", ("Y",)), ("b", ("X", "Y"))], "of c it is only known what it is not"
    path = written(tmp_path / "b.jsonl", answer("a", "X"), answer("b", "Y"), answer("a", "X", "reject"))
    error = refusal(path)
    assert "both accepted and rejected" in error.what and error.where == f"{path}:3"


def test_options_that_were_chosen(tmp_path: Path) -> None:
    options = [{"id": "X", "text": "an X"}, {"id": 7, "text": "a seven"}]
    chosen = [["X"], [7, "X"], []]
    items = [{"text": f"t{i}", "options": options, "accept": one, "answer": "accept"} for i, one in enumerate(chosen)]
    rejected = items[0] | {"text": "t9", "answer": "reject"}
    path = written(tmp_path / "a.jsonl", *items, rejected, items[0])
    assert rows(path, "text", "label") == [("t0", ("X",)), ("t1", ("X", "7")), ("t2", ())]
    assert "another answer" in refusal(written(tmp_path / "b.jsonl", *items, items[0] | {"accept": [7]})).what


def test_spans_become_tags(tmp_path: Path) -> None:
    span = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
    tokens = [{"text": "Ann", "start": 0, "end": 3, "id": 0}]
    items = [
        {"text": "My card is lost", "tokens": [], "answer": "accept"},
        {"text": "Ann lost it", "tokens": tokens, "spans": [span], "answer": "accept"},
        {"text": "Bob lost it", "spans": [], "answer": "reject"},
        {"text": "Annika lost it", "spans": [span], "answer": "accept"},
    ]
    for more in ({"_view_id": "ner_manual"}, {}):
        path = written(tmp_path / "a.jsonl", *items, **more)
        assert open_table(path).header == ("tokens", "tags")
        found = list(open_table(path).rows(("tokens", "tags"), label="tags"))
        assert [row.cells[1] for row in found] == [("O",) * 4, ("B-PER", "O", "O"), ("B-PER", "O", "O")]
        assert [row.rounded for row in found] == [0, 0, 1] and [row.line for row in found] == [1, 2, 4]
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"text": "Ann lost it", "spans": [span]}) + "\n")
    assert rows(bare, "tags") == [(("B-PER", "O", "O"),)]


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "X"}], "_view_id": "ner"}, "about one span"),
        ({"text": "Bob", "spans": [{"start": 0, "end": 9, "label": "X"}]}, "the span cannot be tagged"),
        ({"text": "Ann", "spans": [{"start": "0", "end": 3, "label": "X"}]}, "the spans are not in Prodigy's form"),
        ({"text": "Ann", "spans": {"a": 1}}, "the spans are not in Prodigy's form"),
        ({"text": "Ann", "accept": "X"}, "the options are not in Prodigy's form"),
        ({"text": "Ann", "answer": "maybe"}, "the line is not an answer of Prodigy"),
        ({"text": "Ann", "spans": [{"start": 0, "end": 2, "label": "X"}]}, "another answer on an earlier line"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path, item: dict[str, Any], what: str) -> None:
    good = {"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": "accept"}
    path = written(tmp_path / "a.jsonl", good, {"answer": "accept"} | item)
    error = refusal(path)
    assert what in error.what and error.where == f"{path}:2"


def test_the_report_tells_what_was_left_out(tmp_path: Path) -> None:
    items = [answer(f"text {i}", "XY"[i % 2]) for i in range(30)]
    more = [answer("more", "X", "reject"), answer("none", "X", "ignore")]
    path = written(tmp_path / "a.jsonl", *items, *more)
    data = load(Task.from_file(path))
    told = "a.jsonl (answers of Prodigy: 30 accepted, 1 rejected, 1 ignored; 1 text left out, of which only rejected"
    assert told in data.report["splits"] and data.task.labels == ("X", "Y")
    assert sum(len(split.examples) for split in data.splits.values()) == 30


def test_a_file_without_any_answer_is_not_called_empty(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *(answer(f"text {i}", "X", "ignore") for i in range(3)))
    error = refusal(path)
    assert error.what == "no text has an answer" and error.got == "answers of Prodigy: 3 ignored"


def test_another_key_may_be_the_label(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *(answer(f"text {i}", "X", ("accept", "reject")[i % 2]) for i in range(30)))
    assert load(Task.from_file(path, label="answer")).task.labels == ("accept", "reject")
    assert load(Task.from_file(path, label="label")).task.labels == ("X", "not X")
    with pytest.raises(DataError, match="no column 'tokens'"):
        load(Task.from_file(path, kind="tagging"))
