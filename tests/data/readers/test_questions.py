"""Questions about passages: from files to examples, split by article, and every bad input refused with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError, GraftworkError
from graftwork.targets.passages import Golds

CONTEXT = "Zürich was founded by the Romans in 15 BC. The Romans called it Turicum."
ROMANS = {"text": "the Romans", "answer_start": 22}


def line(number: int, **changes: Any) -> dict[str, Any]:
    row = {"id": f"q{number}", "title": f"article {number // 4}", "context": f"{CONTEXT} Number {number // 2}."}
    return row | {"question": f"Who founded it, {number}?", "answers": [ROMANS]} | changes


def write(folder: Path, rows: list[dict[str, Any]], name: str = "t.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def squad(folder: Path, rows: list[dict[str, Any]], name: str = "t.json", **top: Any) -> Path:
    """The same rows, an article and a paragraph for each."""
    articles = [
        {
            "title": row["title"],
            "paragraphs": [
                {"context": row["context"], "qas": [{k: row[k] for k in row if k not in ("title", "context")}]}
            ],
        }
        for row in rows
    ]
    path = folder / name
    path.write_text(json.dumps({"version": "1.1", "data": articles} | top), encoding="utf-8")
    return path


def loaded(path: Path, **flags: Any) -> Dataset:
    return load(Task.from_file(path, kind="span", **flags))


def refusal(path: Path, error: type[GraftworkError] = DataError, **flags: Any) -> str:
    with pytest.raises(error) as caught:
        loaded(path, **flags)
    return caught.value.message


def everything(data: Dataset) -> list[Any]:
    found = [example for split in data.splits.values() for example in split.examples]
    return sorted(found, key=lambda example: int(example.id.split("/")[1]))


ROWS = [line(number) for number in range(80)]


def test_one_file_is_split_by_article(tmp_path: Path) -> None:
    data = loaded(write(tmp_path, ROWS))
    assert {name: len(split.examples) for name, split in data.splits.items()} == {
        "train": 64,
        "validation": 8,
        "test": 8,
    }
    articles = {
        name: {(int(example.id.split("/")[1]) - 1) // 4 for example in split.examples}
        for name, split in data.splits.items()
    }
    assert not (articles["train"] & articles["test"] or articles["validation"] & (articles["train"] | articles["test"]))
    assert "by a hash of the article (title), 20 in all: no article (title) is in two" in data.report["splits"]
    assert data.report["passages"] == {"train": 32, "validation": 4, "test": 4}
    assert data.task.metrics == ("span_f1", "exact_match") and not data.task.settings.unanswerable
    first = everything(data)[0]
    assert first.inputs["question"] == "Who founded it, 0?" and first.inputs["words"][:3] == (
        "Zürich",
        "was",
        "founded",
    )
    assert first.source == f"{CONTEXT} Number 0." and first.target == (("the Romans", 22),)
    again = loaded(write(tmp_path, ROWS[::-1]))
    questions = [{example.inputs["question"] for example in each.test.examples} for each in (data, again)]
    assert questions[0] == questions[1], "the order of the rows decides nothing"


def test_without_titles_passages_stay_together(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "title"} for row in ROWS]
    data = loaded(write(tmp_path, rows))
    for name in ("validation", "test"):
        assert data.report["passages_across"][name] == 0
    assert "by a hash of the context, 40 in all" in data.report["splits"]


def test_articles_count_once_however_long(tmp_path: Path) -> None:
    rows = [row | {"title": "long" if n < 60 else row["title"]} for n, row in enumerate(ROWS)]
    data = loaded(write(tmp_path, rows))
    splits = data.splits.values()
    articles = [{rows[int(e.id.split("/")[1]) - 1]["title"] for e in split.examples} for split in splits]
    assert [len(titles) for titles in articles] == [4, 1, 1]


def test_all_forms_give_the_same_examples(tmp_path: Path) -> None:
    forms = [
        {"answers": {"text": ["the Romans", "The Romans"], "answer_start": [22, 43]}},
        {"answers": [ROMANS, {"text": "The Romans", "start": 43, "start_ambiguous": False}]},
    ]
    paths = [write(tmp_path, [row | form for row in ROWS], f"{n}.jsonl") for n, form in enumerate(forms)]
    paths += [squad(tmp_path, [row | form for row in ROWS], f"{n}.json") for n, form in enumerate(forms)]
    zipped = tmp_path / "zipped.json.gz"
    zipped.write_bytes(gzip.compress(paths[2].read_bytes()))
    data = [loaded(path) for path in (*paths, zipped)]
    assert len({each.digest for each in data}) == 1
    assert everything(data[0])[7].target == (("the Romans", 22), ("The Romans", 43))


def test_questions_of_one_passage_share_its_words(tmp_path: Path) -> None:
    one, two, other = everything(loaded(write(tmp_path, ROWS)))[:3]
    assert one.inputs["words"] is two.inputs["words"] and one.target.passage is two.target.passage
    assert one.inputs["words"] is not other.inputs["words"]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_questions_without_an_answer(tmp_path: Path, suffix: str) -> None:
    rows = [row | {"answers": [] if n % 3 else [ROMANS], "is_impossible": bool(n % 3)} for n, row in enumerate(ROWS)]
    data = loaded((write if suffix == "jsonl" else squad)(tmp_path, rows, f"t.{suffix}"))
    assert data.task.settings.unanswerable and data.task.question()["unanswerable"]
    assert sum(data.report["unanswerable"].values()) == sum(n % 3 > 0 for n in range(80))
    one, two = everything(data)[:2]
    assert one.target == (("the Romans", 22),) and two.target == ()


def test_an_answer_inside_a_word_is_counted(tmp_path: Path) -> None:
    rows = [*ROWS[:-1], line(79, answers=[{"text": "Roman", "answer_start": 26}])]
    data = loaded(write(tmp_path, rows))
    (counts,) = [counts for what, counts in data.report["mended"].items() if "inside a word" in what]
    assert sum(counts.values()) == 1 and any("inside a word" in text for text in data.report["warnings"])


def test_answers_off_their_offset(tmp_path: Path) -> None:
    rows = [*ROWS, line(80, answers=[{"text": "Romans", "answer_start": 40}]), line(81, answers=[{"text": "Romans"}])]
    path = write(tmp_path, rows)
    message = refusal(path)
    assert "2 answers" in message and "t.jsonl:81 (id 'q80'): 'Romans' at 40" in message and "--realign" in message
    data = loaded(path, realign=True)
    assert [example.target[0].start for example in everything(data)[80:]] == [47, 26], (
        "nearest to where it is said to be"
    )
    (counts,) = [counts for what, counts in data.report["mended"].items() if "offset" in what]
    assert sum(counts.values()) == 2


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"answers": [{"text": "the Greeks", "answer_start": 22}]}, ["the answer is not in its context", "'the Greeks'"]),
    ({"context": " \n"}, ["the context is empty"]),
    ({"context": None}, ["the text 'context' is missing"]),
    ({"question": ""}, ["the question is empty"]),
    ({"question": 7}, ["the text 'question' is missing"]),
    ({"answers": [{"text": " ", "answer_start": 6}]}, ["an answer is empty"]),
    ({"answers": "the Romans"}, ["the answers are not a list"]),
    ({"answers": {"text": ["the Romans"], "answer_start": []}}, ["the answers and their positions do not match"]),
    ({"answers": [{"text": "the Romans", "answer_start": "22"}]}, ["not a whole number"]),
    ({"answers": [{"text": "the Romans", "answer_start": 2.5}]}, ["not a whole number"]),
    ({"answers": [{"text": "the Romans", "answer_start": -3}]}, ["not a whole number"]),
    ({"is_impossible": True}, ["it has answers and is said to have none"]),
    ({"answers": [], "is_impossible": False}, ["said to have an answer and has none"]),
    ({"is_impossible": 0}, ["is_impossible is neither true nor false"]),
    ({"id": "q2"}, ["the id 'q2' occurs twice", "it is at"]),
]


@pytest.mark.parametrize(("change", "said"), BAD)
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_bad_questions(tmp_path: Path, suffix: str, change: dict[str, Any], said: list[str]) -> None:
    if suffix == "jsonl" and change.get("answers") == [{"text": "the Romans", "answer_start": "22"}]:
        change = {"answers": [{"text": "the Romans", "answer_start": "twenty-two"}]}
    rows = [*ROWS[:4], ROWS[4] | change, *ROWS[5:]]
    message = refusal((write if suffix == "jsonl" else squad)(tmp_path, rows, f"t.{suffix}"))
    place = "t.jsonl:5" if suffix == "jsonl" else "t.json: data[4].paragraphs[0].qas[0]"
    for part in (*said, place, change.get("id", "q4")):
        assert part in message, message


def test_other_names_of_the_texts_are_told(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, [{"doc": "Romans came.", "q": "Who came?", "answers": []}], "t.jsonl"))
    assert "the key 'context' is missing" in message and '["doc", "q", "answers"]' in message


def test_bad_files(tmp_path: Path) -> None:
    assert "unknown suffix '.csv'" in refusal(write(tmp_path, ROWS, "t.csv"))
    empty = tmp_path / "e.json"
    empty.write_text('{"data": []}')
    assert "the file has no questions" in refusal(empty)
    empty.write_text('{"data": [{"title": "x"}]}')
    assert "the list 'paragraphs' is missing" in refusal(empty)
    empty.write_text('{"data": ')
    assert "e.json:1:" in refusal(empty) and "the file is not valid JSON" in refusal(empty)
    empty.write_text('["data"]')
    assert "e.json: [0]: the item is not a question" in refusal(empty)
    empty.write_text('"data"')
    assert "the file has no list of articles" in refusal(empty)
    assert "too few questions" in refusal(write(tmp_path, ROWS[:6]))
    assert "no question is left for test" in refusal(write(tmp_path, [row | {"title": "one"} for row in ROWS]))
    assert "no training question has an answer" in refusal(write(tmp_path, [row | {"answers": []} for row in ROWS]))


def test_settings_about_columns_mean_nothing(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, ROWS), ConfigError, text="context")
    assert "leave --text out" in message


def test_given_files_may_share_passages_and_it_is_said(tmp_path: Path) -> None:
    train, test = (
        write(tmp_path, ROWS[:60]),
        write(tmp_path, [line(90, context=ROWS[0]["context"]), line(91)], "test.jsonl"),
    )
    data = loaded(train, test=test, validation=write(tmp_path, ROWS[60:], "v.jsonl"))
    assert data.report["passages_across"] == {"validation": 0, "test": 1}
    assert any("1 row of test (50.0%) asks about a passage that train asks" in text for text in data.report["warnings"])
    assert (
        data.report["splits"]
        == "train 60 questions from t.jsonl; validation 20 questions from v.jsonl; test 2 questions from test.jsonl."
    )
    assert isinstance(data.test.examples[0].target, Golds)
