"""Parquet, Label Studio, doccano and brat through the one door: rows come out, bad ones are named with their place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.data.readers.brat import _pieces
from graftwork.data.readers.character_offsets import Mark
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, GraftworkError

CARD, LOST = "My card is lost", "Ann lost it"


def rows(path: Path, *columns: str, label: str | None = "label") -> list[tuple[Any, ...]]:
    return [row.cells for row in open_table(path).rows(columns, label=label)]


def refusal(path: Path, *columns: str) -> GraftworkError:
    with pytest.raises(GraftworkError) as caught:
        rows(path, *columns)
    return caught.value


def studio(path: Path, *tasks: tuple[str, list[dict[str, Any]]], **more: Any) -> Path:
    items = [
        {"id": at, "data": {"text": text}, "annotations": [{"result": result, **more}]}
        for at, (text, result) in enumerate(tasks, 1)
    ]
    path.write_text(json.dumps(items, indent=1))
    return path


def choice(*names: str) -> dict[str, Any]:
    return {"type": "choices", "value": {"choices": list(names)}}


def region(start: int, end: int, label: str, **more: Any) -> dict[str, Any]:
    return {"type": "labels", "value": {"start": start, "end": end, "labels": [label], **more}}


def test_choices_of_label_studio(tmp_path: Path) -> None:
    path = studio(tmp_path / "a.json", (CARD, [choice("card")]), (LOST, [choice("a", "b")]), (LOST, []))
    assert open_table(path).header == ("text", "label")
    assert rows(path, "text", "label") == [(CARD, "card"), (LOST, ("a", "b")), (LOST, ())]


def test_choices_of_two_controls_are_no_labels_of_one(tmp_path: Path) -> None:
    topic, mood = ({"from_name": name, **choice("a")} for name in ("topic", "mood"))
    wrong = refusal(studio(tmp_path / "a.json", (CARD, [topic]), (LOST, [topic, mood])), "text", "label")
    assert "more than one question" in wrong.what and wrong.where.endswith("(task 2)")
    assert wrong.got == "'topic, mood'"
    assert rows(studio(tmp_path / "b.json", (CARD, [topic]), (LOST, [topic])), "label") == [("a",), ("a",)]


def test_spans_of_label_studio(tmp_path: Path) -> None:
    path = studio(tmp_path / "a.json", (LOST, [region(0, 3, "PER", text="Ann")]), (CARD, []))
    assert open_table(path).header == ("tokens", "tags")
    assert rows(path, "tokens", "tags") == [
        (("Ann", "lost", "it"), ("B-PER", "O", "O")),
        (("My", "card", "is", "lost"), ("O",) * 4),
    ]
    wrong = refusal(studio(tmp_path / "b.json", (CARD, []), (LOST, [region(0, 3, "PER", text="nn ")])), "tokens")
    assert "not the one at its offsets" in wrong.what
    assert wrong.where.endswith("b.json: [1] (task 2)")


def test_annotators_of_label_studio_who_agree_are_one(tmp_path: Path) -> None:
    def by(name: str, *results: dict[str, Any]) -> dict[str, Any]:
        return {"result": [result | {"id": f"{name}{at}", "origin": name} for at, result in enumerate(results)]}

    def written(*annotations: dict[str, Any]) -> Path:
        path = tmp_path / "a.json"
        path.write_text(json.dumps([{"id": 1, "data": {"text": CARD}, "annotations": annotations}]))
        return path

    spans = region(0, 2, "PER"), region(3, 7, "ORG")
    alone = rows(written(by("ann", *spans)), "tokens", "tags", label="tags")
    assert rows(written(by("ann", *spans), by("bob", *spans[::-1])), "tokens", "tags", label="tags") == alone
    assert rows(written(by("ann", choice("a")), by("bob", choice("a"))), "text", "label") == [(CARD, "a")]
    assert "different answers" in refusal(written(by("ann", choice("a")), by("bob", choice("b"))), "text", "label").what


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"data": 1}', "the file is not a list"),
        ('[{"id": 1, "annotations": [], "label": "b"}]', "the item is not a task of Label Studio's JSON export"),
        ('[{"id": 1, "data": {"text": "a"}, "annotations": []}]', "nobody has annotated"),
        (
            '[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": []}, {"result": [{"type": "a"}]}]}]',
            "different answers",
        ),
        ('[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"type": {}}]}]}]', "objects with a type"),
        (
            '[{"id": 1, "data": {"a": "a", "b": "b"}, "annotations": [{"result": []}]}]',
            "the task has no text, or more than one",
        ),
        ('[{"id": 1, "data": {"text": 5, "url": "b"}, "annotations": [{"result": []}]}]', "the text is not a string"),
        ('[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"type": "rating"}]}]}]', "neither labels nor"),
        ("[{", "the file is not valid JSON"),
        ("[]", "the file is empty"),
    ],
)
def test_what_is_no_export_of_label_studio(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert what in refusal(path, "text", "label").what


def test_spans_of_doccano_in_its_three_forms(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for key, given in (
        ("label", [[0, 3, "PER"]]),
        ("labels", [[0, 3, "PER"]]),
        ("entities", [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 3}]),
    ):
        lines = [{"id": 1, "text": CARD, key: []}, {"id": 2, "text": LOST, key: given}]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert open_table(path).header == ("tokens", "tags")
        assert rows(path, "tags") == [(("O",) * 4,), (("B-PER", "O", "O"),)]
    path.write_text(path.read_text() + '{"text": "a", "entities": 3}\n')
    error = refusal(path, "tags")
    assert (error.where, error.what) == (f"{path}:3", "the line is not a row of doccano with spans")


def beside_spans(path: Path, words: bool = False) -> Path:
    """Thirty texts of two categories, with spans of no use to a classification; `words` with tags of their own."""
    lines: list[dict[str, Any]] = [
        {"text": f"{LOST} {i}", "category": "ab"[i % 2], "entities": [[0, 3, "PER"]]} for i in range(30)
    ]
    more = [{"tags": ["lost"], "tokens": ["a", f"card{i}"], "case": ["X", "Y"]} if words else {} for i in range(30)]
    path.write_text("".join(f"{json.dumps(line | own)}\n" for line, own in zip(lines, more, strict=True)))
    return path


def test_a_label_that_is_named_goes_before_spans(tmp_path: Path) -> None:
    path = beside_spans(tmp_path / "a.jsonl")
    for named in ({"text": "text"}, {}):
        data = load(Task.from_file(path, label="category", **named))
        assert data.task.labels == ("a", "b") and data.train.examples[0].inputs["text"].startswith(LOST)
    assert load(Task.from_file(path, kind="tagging")).task.labels == ("B-PER", "O")
    tagged = beside_spans(tmp_path / "b.jsonl", words=True)
    assert load(Task.from_file(tagged, kind="tagging")).task.labels == ("B-PER", "O")
    assert load(Task.from_file(tagged, kind="tagging", label="case")).task.labels == ("X", "Y")
    assert load(Task.from_file(tagged, kind="multilabel", label="tags", text="text")).task.labels == ("lost",)


def test_a_label_that_is_not_there_is_told_with_the_keys(tmp_path: Path) -> None:
    path = beside_spans(tmp_path / "a.jsonl")
    with pytest.raises(GraftworkError) as caught:
        load(Task.from_file(path, label="categori"))
    assert "text, category, entities" in caught.value.got and "--label category" in caught.value.do
    with pytest.raises(GraftworkError) as caught:
        load(Task.from_file(path))
    assert "made of the spans in 'entities'; where the label is another key, every key is a column" in caught.value.got
    assert "--kind tagging" in caught.value.do and "--label KEY" in caught.value.do


def test_labels_of_doccano_are_jsonl_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"id": 1, "text": "{CARD}", "label": ["card"]}}\n')
    assert rows(path, "text", "label") == [(CARD, ("card",))]


def brat(folder: Path, text: str, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text(text)
    (folder / "a.ann").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_a_folder_of_brat(tmp_path: Path) -> None:
    text = f"{LOST}\n\n{CARD}\nin New\nYork\n"
    lines = ["T1\tPER 0 3\tAnn", "R1\tRel Arg1:T1 Arg2:T2", "#1\tAnnotatorNotes T1\thm", "T2\tLOC 32 40\tNew York"]
    folder = brat(tmp_path / "corpus", text, *lines)
    found = [(row.line, row.cells) for row in open_table(folder).rows(("tokens", "tags"))]
    assert found == [
        (1, (("Ann", "lost", "it"), ("B-PER", "O", "O"))),
        (3, (("My", "card", "is", "lost"), ("O",) * 4)),
        (4, (("in", "New", "York"), ("O", "B-LOC", "I-LOC"))),
    ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("T1\tPER 0 3\tBob", "does not match the text"),
        ("T1\tPER 0 3;4 8\tAnn lost", "the span has gaps"),
        ("T1 PER 0 3 Ann", "the line is not an annotation of brat"),
    ],
)
def test_a_broken_annotation(tmp_path: Path, line: str, what: str) -> None:
    error = refusal(brat(tmp_path / "c", LOST, "", line), "tokens")
    assert what in error.what
    assert error.where.endswith("a.ann:2")


def test_an_id_of_brat_that_stands_twice(tmp_path: Path) -> None:
    error = refusal(brat(tmp_path / "c", LOST, "T1\tPER 0 3\tAnn", "T1\tPER 4 8\tlost"), "tokens")
    assert "T1 occurs twice" in error.what and error.where.endswith("a.ann:2")


def test_a_text_without_annotations_and_annotations_without_a_text(tmp_path: Path) -> None:
    folder = brat(tmp_path / "c", LOST)
    (folder / "b.txt").write_text(CARD)
    assert "no annotation file" in refusal(folder, "tokens").what
    (folder / "b.txt").rename(folder / "c.ann")
    error = refusal(folder, "tokens")
    assert "no text file" in error.what and error.where.endswith("c.ann")


def test_the_report_tells_what_was_widened(tmp_path: Path) -> None:
    texts = [f"Ann lost card {i}" for i in range(20)]
    lines = [{"text": text, "label": [[0, 2 if i < 20 else 3, "PER"]]} for i, text in enumerate(texts)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    data = load(Task.from_file(path, kind="tagging"))
    assert data.task.labels == ("B-PER", "O")
    told = [line for line in data.report["warnings"] if "widened to whole words" in line]
    assert len(told) == 1
    counts = data.report["mended"]["Spans whose borders cut through a word, widened to whole words"]
    assert sum(counts.values()) == 20


def test_parquet_row_by_row(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    count = 3000
    columns: dict[str, Any] = {
        "text": [f"text {i}" for i in range(count)],
        "label": [i % 3 for i in range(count)],
        "score": [0.5] * count,
        "names": [["a", "b"]] * count,
        "numbers": [[1, 0.5]] * count,
        "yes": [True] * count,
        "gone": [None] * count,
    }
    parquet.write_table(arrow.table(columns), path, row_group_size=700)
    assert open_table(path).header == tuple(columns)
    found = list(open_table(path).rows(("text", "label"), label="label"))
    assert len(found) == count
    assert (found[-1].line, found[-1].cells) == (count, ("text 2999", "2"))
    assert rows(path, "text", "score", label="score")[0] == ("text 0", "0.5")
    assert rows(path, "yes", label="yes")[0] == ("true",)
    assert rows(path, "numbers", label="numbers")[0] == (("1.0", "0.5"),)
    assert next(open_table(path).rows(["names"], words="names")).cells == (("a", "b"),)
    with pytest.raises(DataError, match="the value of 'names' is not a text"):
        load(Task.from_file(path, text="names", label="label"))
    assert refusal(path, "gone").where == f"{path}:1"
    assert "'score' is not a text" in refusal(path, "score").what
    assert len(load(Task.from_file(path, label="label")).train.examples) > 2000


def test_parquet_that_is_none_and_pyarrow_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no")
    if "pyarrow" in sys.modules:
        with pytest.raises(DataError, match="the Parquet file is damaged or incomplete"):
            open_table(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install .graftwork\[parquet\]."):
        open_table(path)


def test_a_packed_parquet_file_is_to_be_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(b"")
    assert "Parquet file is packed" in refusal(path, "text").what


def test_a_spreadsheet_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"save the sheet as CSV \(UTF-8\)"):
        open_table(path)


def test_parquet_whose_rows_unpack_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"text": ["a"] * 100, "label": ["b"] * 100}), path, row_group_size=50)
    monkeypatch.setattr("graftwork.data.readers.parquet.MOST_ROWS", 50)
    assert len(rows(path, "text")) == 100
    monkeypatch.setattr("graftwork.data.readers.parquet.MOST_ROWS", 49)
    with pytest.raises(DataError, match=r"a group of rows is too large[\s\S]*50 rows"):
        rows(path, "text")


def test_brat_takes_time_by_lines_and_not_by_lines_times_annotations(tmp_path: Path) -> None:
    class Start(int):
        compared = 0

        def __lt__(self, other: int) -> bool:
            Start.compared += 1
            return int(self) < int(other)

    marks = [Mark(Start(4 * place), 4 * place + 3, "PER", "") for place in range(500)]
    pieces = list(_pieces(["Ann\n"] * 500, marks))
    assert len(pieces) == 500 and [piece[4] for piece in pieces] == [[mark] for mark in marks]
    assert Start.compared < 500 * 10
