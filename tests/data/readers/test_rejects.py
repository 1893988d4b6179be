"""Rows set aside: the rest is used, the file tells each with its place and reason, and nothing is set aside unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError

GOOD = [(f"text number {i}", "ab"[i % 2]) for i in range(20)]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def loaded(path: Path, **flags: Any) -> tuple[Dataset, list[dict[str, Any]]]:
    """The data set, and the lines of the file of rejects. Without `rejects` the same file is an error."""
    with pytest.raises(DataError):
        load(Task.from_file(path, **flags))
    rejects = path.parent / "bad.jsonl"
    data = load(Task.from_file(path, rejects=str(rejects), **flags))
    lines = [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()]
    assert all(line["file"] and line["what"] and line["do"] for line in lines)
    return data, lines


def inputs(data: Dataset, role: str = "text") -> list[Any]:
    return sorted(example.inputs[role] for split in data.splits.values() for example in split.examples)


@pytest.mark.parametrize(
    ("name", "row", "bad", "told"),
    [
        ("t.csv", "{0},{1}", ["one,two,three", '"a" b,a', "x\xe9,a", "   ,a"], ["many", "closing", "UTF-8", "empty"]),
        ("t.tsv", "{0}\t{1}", ["alone", "a\tb\tc", "x\xe9\ta"], ["few", "many", "UTF-8"]),
        ("t.jsonl", '{{"text": "{0}", "label": "{1}"}}', ['{"text": "a"', '{"text": 1, "label": "a"}', "[]", "{}"],
         ["valid JSON", "not a text", "not a JSON object", "missing"]),
    ],
)  # fmt: skip
def test_bad_lines_of_tables(tmp_path: Path, name: str, row: str, bad: list[str], told: list[str]) -> None:
    header = [] if name == "t.jsonl" else [row.format("text", "label")]
    rows = [row.format(*pair) for pair in GOOD]
    lines = [*header, rows[0], *bad, *rows[1:]]
    path = write(tmp_path, name, "".join(f"{line}\n" for line in lines).encode("latin-1"))
    data, rejects = loaded(path)
    assert inputs(data) == sorted(text for text, _ in GOOD)
    first = len(header) + 2
    assert [line["line"] for line in rejects] == list(range(first, first + len(bad)))
    assert all(word in line["what"] for word, line in zip(told, rejects, strict=True))
    assert [line["row"].rstrip("\n") for line in rejects] == [line.replace("\xe9", "\\xe9") for line in bad]
    assert data.report["rejected"] == {"train": len(bad)}
    assert any(f"{len(bad)} of {name}" in warning and "bad.jsonl" in warning for warning in data.report["warnings"])


def test_the_rest_is_what_a_file_without_the_bad_rows_is(tmp_path: Path) -> None:
    rows = [f"{text},{label}" for text, label in GOOD]
    clean = load(Task.from_file(write(tmp_path, "clean.csv", "text,label\n" + "\n".join(rows))))
    path = write(tmp_path, "t.csv", "text,label\n" + "\n".join([*rows[:9], "a,b,c", *rows[9:]]))
    found = loaded(path)[0]
    for name, split in clean.splits.items():
        assert [(one.inputs, one.target) for one in found.splits[name].examples] == [
            (one.inputs, one.target) for one in split.examples
        ]


MISPLACED = {"answers": [{"text": "nobody", "answer_start": 3}]}


@pytest.mark.parametrize(
    "change", [MISPLACED, MISPLACED | {"title": None}, {"id": "q4"}], ids=["misplaced", "without a title", "twice"]
)
def test_bad_questions_of_lines_are_told_whole(tmp_path: Path, change: dict[str, Any]) -> None:
    asked = [
        {"id": f"q{number}", "title": f"article {number}", "context": f"Rome was founded by kings, {number} of them."}
        | {"question": "Who founded it?", "answers": [{"text": "kings", "answer_start": 20}]}
        for number in range(60)
    ]
    lines = [json.dumps(row) for row in [*asked[:9], asked[9] | change, *asked[10:]]]
    data, (told,) = loaded(write(tmp_path, "t.jsonl", "\n".join(lines)), kind="span")
    assert (told["line"], told["row"].rstrip("\n")) == (10, lines[9])
    assert "by a hash of the article (title)" in data.report["splits"]  # all that are left name theirs


def test_an_example_is_called_by_its_row_in_the_file(tmp_path: Path) -> None:
    rows = [f"{text},{label}" for text, label in GOOD]
    path = write(tmp_path, "t.csv", "text,label\n" + "\n".join([*rows[:9], "a,b,c", *rows[9:]]))
    called = {
        int(one.id.split("/")[1]): one.inputs["text"]
        for split in loaded(path)[0].splits.values()
        for one in split.examples
    }
    assert called == {at + (at > 9): text for at, (text, _) in enumerate(GOOD, 1)}


def test_a_record_that_breaks_off_in_quotes_takes_its_lines_with_it(tmp_path: Path) -> None:
    lines = ["text,label", '"opened', "swallowed,a", '"second",a', *(f"{text},{label}" for text, label in GOOD)]
    data, rejects = loaded(write(tmp_path, "t.csv", "\n".join(lines)))
    assert inputs(data) == sorted(text for text, _ in GOOD)
    (told,) = rejects
    assert (told["line"], told["row"]) == (2, '"opened\nswallowed,a\n"second",a\n')


def test_an_empty_line_is_set_aside_and_the_row_behind_it_kept(tmp_path: Path) -> None:
    lines = ["text,label", *(f"{text},{label}" for text, label in GOOD)]
    data, rejects = loaded(write(tmp_path, "t.csv", "\n".join([*lines[:5], "", *lines[5:]]) + "\n\n"))
    assert len(inputs(data)) == len(GOOD)
    assert [(line["line"], line["row"]) for line in rejects] == [(6, "\n")]


def test_a_sentence_goes_whole(tmp_path: Path) -> None:
    good = [f"My O\ncard{i} B-THING\nis O\n" for i in range(12)]
    bad = "Where O\nlost\nis O\n"
    data, rejects = loaded(write(tmp_path, "t.conll", "\n".join([*good[:3], bad, *good[3:]])), kind="tagging")
    assert len(inputs(data, "words")) == 12 and all(words[0] == "My" for words in inputs(data, "words"))
    assert [(line["line"], line["where"].rsplit(":", 1)[1], line["row"]) for line in rejects] == [(13, "14", bad)]


def test_a_text_with_a_bad_candidate_goes_whole(tmp_path: Path) -> None:
    groups = [[f"query {i}\tanswer {k} of {i}\t{int(k == 0)}" for k in range(3)] for i in range(12)]
    groups[4][1] = "query 4\tbroken"
    lines = ["query\tcandidate\trelevance", *(line for group in groups for line in group)]
    data, rejects = loaded(write(tmp_path, "t.tsv", "\n".join(lines)), kind="ranking")
    assert inputs(data) == sorted(f"query {i}" for i in range(12) if i != 4)
    assert [(line["line"], line["what"]) for line in rejects] == [(15, "the row has too few fields")] * 1 + [
        (14, "the row has too few fields")
    ]
    assert [line["row"].rstrip("\n") for line in rejects] == ["query 4\tbroken", "\n".join(groups[4])]


def test_a_bad_row_between_two_texts_takes_both(tmp_path: Path) -> None:
    groups = [[f"query {i}\tanswer {k} of {i}\t{int(k == 0)}" for k in range(3)] for i in range(12)]
    groups[4][2] = "broken"
    lines = ["query\tcandidate\trelevance", *(line for group in groups for line in group)]
    data, rejects = loaded(write(tmp_path, "t.tsv", "\n".join(lines)), kind="ranking")
    assert inputs(data) == sorted(f"query {i}" for i in range(12) if i not in (4, 5))
    assert len(rejects) == 3


def test_questions_one_by_one(tmp_path: Path) -> None:
    def question(number: int, **changes: Any) -> dict[str, Any]:
        answers = {"text": ["river"], "answer_start": [4]}
        plain = {"context": f"The river {number} is long.", "question": "What is long?", "answers": answers}
        return {"id": str(number), **plain, **changes}

    rows = [question(number) for number in range(20)]
    rows[3]["answers"] = {"text": ["river"], "answer_start": [5]}
    rows[5]["answers"] = {"text": ["lake"], "answer_start": [4]}
    rows[7]["id"] = "6"
    del rows[9]["answers"]
    path = write(tmp_path, "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data, rejects = loaded(path, kind="span")
    assert [line["line"] for line in rejects] == [4, 6, 8, 10]
    told = ["are not at their offsets", "not in its context", "occurs twice", "'answers' is missing"]
    assert all(words in line["what"] for words, line in zip(told, rejects, strict=True))
    assert len(inputs(data, "question")) == 16
    articles = [
        {"title": str(n), "paragraphs": [{"context": row["context"], "qas": [row]}]} for n, row in enumerate(rows)
    ]
    for row in rows:
        if "answers" in row:
            given = row["answers"]
            row["answers"] = [{"text": given["text"][0], "answer_start": given["answer_start"][0]}]
    again, rejects = loaded(write(tmp_path, "t.json", json.dumps({"data": articles})), kind="span")
    assert len(rejects) == 4 and "row" not in rejects[0] and "data[3].paragraphs[0].qas[0]" in rejects[0]["where"]
    assert inputs(again, "question") == inputs(data, "question")


def test_tasks_texts_and_images(tmp_path: Path) -> None:
    spans = [{"text": f"Ann lost number {i}", "label": [[0, 3, "PER"]]} for i in range(12)]
    spans[2]["label"] = [[0, 3, "PER"], [1, 5, "PER"]]
    path = write(tmp_path, "d.jsonl", "".join(json.dumps(row) + "\n" for row in spans))
    data, rejects = loaded(path, kind="tagging")
    assert [line["line"] for line in rejects] == [3] and len(inputs(data, "words")) == 11
    result = [{"type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"]}}]
    tasks: list[dict[str, Any]] = [
        {"id": i, "data": {"text": row["text"]}, "annotations": [{"result": result}]} for i, row in enumerate(spans)
    ]
    tasks[2]["annotations"] = []
    data, rejects = loaded(write(tmp_path, "s.json", json.dumps(tasks, indent=0)), kind="tagging")
    assert "(task 2)" in rejects[0]["where"] and len(inputs(data, "words")) == 11
    for i, row in enumerate(spans):
        write(tmp_path, f"brat/{i:02}.txt", row["text"] + "\nNothing here.\n")
        write(tmp_path, f"brat/{i:02}.ann", "T1\tPER 0 3\tAnn\n" if i != 2 else "T1\tPER 0 5\tAnn\n")
    data, rejects = loaded(tmp_path / "brat", kind="tagging")
    assert [(line["line"], line["row"]) for line in rejects] == [(1, "Ann lost number 2\n"), (2, "Nothing here.\n")]
    assert len(inputs(data, "words")) == 22


def test_rows_of_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts: list[str | None] = [text for text, _ in GOOD]
    texts[4] = None
    table = pyarrow.table({"text": texts, "label": [label for _, label in GOOD]})
    parquet.write_table(table, tmp_path / "t.parquet")
    data, rejects = loaded(tmp_path / "t.parquet")
    assert [line["line"] for line in rejects] == [5] and "row" not in rejects[0]
    assert len(inputs(data)) == len(GOOD) - 1


def test_without_bad_rows_the_file_is_empty_and_the_data_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,label\n" + "\n".join(f"{text},{label}" for text, label in GOOD))
    rejects = write(tmp_path, "bad.jsonl", "of another day")
    data = load(Task.from_file(path, rejects=str(rejects)))
    assert rejects.read_bytes() == b"" and data.report["rejected"] == {"train": 0}
    assert data.digest == load(Task.from_file(path)).digest
    assert "rejected" not in load(Task.from_file(path)).report


def test_a_file_without_any_good_row_is_an_error_and_still_told(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,label\na\nb\n")
    with pytest.raises(DataError, match="no row of the file can be read"):
        load(Task.from_file(path, rejects=str(tmp_path / "bad.jsonl")))
    assert (tmp_path / "bad.jsonl").read_text().count("\n") == 2


def test_it_is_not_written_over_the_data_nor_by_who_only_reads_along(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,label\na\n" + "\n".join(f"{text},{label}" for text, label in GOOD))
    with pytest.raises(ConfigError, match="written over the train file"):
        load(Task.from_file(path, rejects=str(path)))
    quiet = load(Task.from_file(path, rejects=str(tmp_path / "bad.jsonl")), checked=False)
    assert quiet.report["rejected"] == {"train": 1} and not (tmp_path / "bad.jsonl").exists()


def test_a_task_file_names_it_beside_itself(tmp_path: Path) -> None:
    write(tmp_path, "t.csv", "text,label\na\n" + "\n".join(f"{text},{label}" for text, label in GOOD))
    asked = Task.from_file(write(tmp_path, "t.toml", 'data = "t.csv"\nrejects = "bad.jsonl"\n'))
    assert load(asked).report["rejected"] == {"train": 1}
    assert (tmp_path / "bad.jsonl").is_file()
