"""Files of texts with choices: every layout gives the same examples, no label is guessed, bad rows have a place."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.task import Dataset, Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, DataError, UnknownName

ROWS = [(f"text {i}", (f"a {i}", f"b {i}"), i % 2) for i in range(20)]


def write(folder: Path, lines: list[Any], name: str = "t.jsonl") -> Path:
    path = folder / name
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(written) + "\n", encoding="utf-8")
    return path


def lists(**changes: Any) -> list[dict[str, Any]]:
    return [{"text": text, "choices": choices, "label": right} | changes for text, choices, right in ROWS]


def columns(first: int = 1, sep: str = "\t") -> list[str]:
    """A column for each choice; the label is the name of one."""
    names = (f"choice{first}", f"choice{first + 1}")
    header = sep.join(("premise", *names, "label"))
    return [header, *(sep.join((text, *choices, names[right])) for text, choices, right in ROWS)]


def read(path: Path, kind: str = "choice", **flags: Any) -> Dataset:
    return load(Task.from_file(path, kind=kind, **flags))


def rows(data: Dataset) -> list[tuple[str, tuple[str, ...], int]]:
    found = [example for split in data.splits.values() for example in split.examples]
    found.sort(key=lambda example: int(example.id.split("/")[1]))
    return [(example.inputs["text"], example.inputs["choices"], example.target.index(1)) for example in found]


def test_every_layout_gives_the_same_examples(tmp_path: Path) -> None:
    named = [f"{text}\t{choices[0]}\t{choices[1]}\t{right}" for text, choices, right in ROWS]
    single = [
        f"{text}\t{choice}\t{int(i == right)}" for text, choices, right in ROWS for i, choice in enumerate(choices)
    ]
    files = [
        write(tmp_path, lists(), "list.jsonl"),
        write(tmp_path, [{"query": t, "candidates": c, "label": c[r]} for t, c, r in ROWS], "text.jsonl"),
        write(tmp_path, [{"query": t, "candidates": c, "relevance": [1 - r, r]} for t, c, r in ROWS], "marks.jsonl"),
        write(tmp_path, columns(), "columns.tsv"),
        write(tmp_path, columns(sep=","), "columns.csv"),
        write(tmp_path, ["sentence\tending0\tending1\tlabel", *named], "endings.tsv"),
        write(tmp_path, ["query\tcandidate\trelevance", *single], "single.tsv"),
    ]
    for path in files:
        assert rows(read(path)) == ROWS, path.name
        assert rows(read(path, "ranking")) == ROWS, path.name
    assert len({read(path).digest for path in files}) == 1
    named_by_hand = write(
        tmp_path, [line.replace("label", "gold").replace("premise", "p") for line in columns()], "h.tsv"
    )
    assert rows(read(named_by_hand, text="p", choices=("choice1", "choice2"), label="gold")) == ROWS


def test_lists_of_parquet_are_those_of_jsonl(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    listed = rows(read(write(tmp_path, lists())))
    texts = {"text": [text for text, _, _ in ROWS]}
    choices = {"choices": [list(choices) for _, choices, _ in ROWS]}
    for label in ([right for _, _, right in ROWS], [[1 - right, right] for _, _, right in ROWS]):
        parquet.write_table(arrow.table(texts | choices | {"label": label}), path)
        assert rows(read(path)) == listed
    single = [(text, choice, int(i == right)) for text, two, right in ROWS for i, choice in enumerate(two)]
    columns = zip(("text", "answer", "label"), zip(*single, strict=True), strict=True)
    parquet.write_table(arrow.table({name: list(column) for name, column in columns}), path)
    assert rows(read(path, "ranking")) == listed
    two = {
        f"choice{i}": [[choice] for choice in column] for i, column in enumerate(zip(*choices["choices"], strict=True))
    }
    parquet.write_table(arrow.table(texts | two | {"label": [right for _, _, right in ROWS]}), path)
    with pytest.raises(DataError, match="the value of 'choice0' is not a text"):
        read(path)


def test_a_choice_that_the_first_line_lacks_is_not_dropped(tmp_path: Path) -> None:
    lines = [{"text": text, "choice1": a, "choice2": b, "label": f"choice{1 + right}"} for text, (a, b), right in ROWS]
    assert len(rows(read(write(tmp_path, [line | {"note3": "n"} for line in lines])))) == len(ROWS)
    with pytest.raises(DataError, match=r"no key 'choice3'[\s\S]*\"choices\": \[") as caught:
        read(write(tmp_path, [*lines[:4], lines[4] | {"choice3": "c"}, *lines[5:]]))
    assert caught.value.where.endswith(":5")


def test_where_labels_count_from_is_said_or_certain(tmp_path: Path) -> None:
    from_one = write(tmp_path, [{**line, "label": line["label"] + 1} for line in lists()], "one.jsonl")
    with pytest.raises(DataError, match=r"one.jsonl:2: the label '2' is no choice") as caught:
        read(from_one)
    assert "--count-from 1" in caught.value.do
    assert rows(read(from_one, count_from="1")) == ROWS
    body = [f"{text}\t{choices[0]}\t{choices[1]}\t{right}" for text, choices, right in ROWS]
    columns_from_one = write(tmp_path, ["premise\tchoice1\tchoice2\tlabel", *body], "c.tsv")
    with pytest.raises(DataError, match=r"c.tsv:2: the label can be read in two ways") as caught:
        read(columns_from_one)
    assert "--count-from 0" in caught.value.do
    assert rows(read(columns_from_one, count_from="0")) == ROWS
    with pytest.raises(DataError, match="a number from 1 to 2"):
        read(columns_from_one, count_from="1")
    digits = write(tmp_path, [{"text": f"t {i}", "choices": ["1", "0"], "label": "1"} for i in range(20)], "d.jsonl")
    with pytest.raises(DataError, match="in two ways"):
        read(digits)
    assert {right for _, _, right in rows(read(digits, count_from="0"))} == {1}
    with pytest.raises(UnknownName, match="'2'"):
        Task.from_file(digits, count_from="2")


LETTERED = ("AB", "ab", ("opt_a", "opt_b"), ("option_A", "option_B"), ("opa", "opb"), ("answerA", "answerB"))


@pytest.mark.parametrize(
    "called", ["{}", "({})", *(pytest.param(one, marks=pytest.mark.slow) for one in ("{}.", "{})", "[{}]", " {}:"))]
)
@pytest.mark.parametrize("lower", [False, True])
def test_labels_by_letter(tmp_path: Path, called: str, lower: bool) -> None:
    letters = "ab" if lower else "AB"
    labels = [called.format(letters[right]) for _, _, right in ROWS]
    listed = [{"question": t, "options": c, "answer": a} for (t, c, _), a in zip(ROWS, labels, strict=True)]
    data = read(write(tmp_path, listed))
    assert rows(data) == ROWS
    assert "Labels are the letters of choices: A is the first" in data.report["splits"]
    lines = [f"{t},{c[0]},{c[1]},{a}" for (t, c, _), a in zip(ROWS, labels, strict=True)]
    for names, label in itertools.product(LETTERED, ("label", "answer", "answerKey", "cop")):
        path = write(tmp_path, [",".join(["question", *names, label]), *lines], "t.csv")
        assert rows(load(Task.from_file(path, kind="choice"), checked=False)) == ROWS, (names, label)


@pytest.mark.parametrize("names", LETTERED)
def test_labels_by_number_where_columns_have_letters(tmp_path: Path, names: Sequence[str]) -> None:
    lines = [f"{t},{c[0]},{c[1]},{right}" for t, c, right in ROWS]
    for label in ("label", "answer", "answerKey", "cop"):
        path = write(tmp_path, [",".join(["question", *names, label]), *lines], "n.csv")
        assert rows(load(Task.from_file(path, kind="choice"), checked=False)) == ROWS, label


def test_numbers_of_which_none_is_0_are_doubtful(tmp_path: Path) -> None:
    lines = [{"text": f"t {i}", "choices": ["a", "b", "c", "d"], "label": 1 + i % 3} for i in range(20)]
    assert "say --count-from 1" in read(write(tmp_path, lines)).report["splits"]
    assert "--count-from" not in read(write(tmp_path, lines), count_from="0").report["splits"]
    assert "--count-from" not in read(write(tmp_path, lists())).report["splits"]
    assert "--count-from" not in read(write(tmp_path, lists(label=[1, 0]))).report["splits"]
    marks = [f"q {i // 2}\tc {i}\t{int(i < 120 or i % 2)}" for i in range(160)]
    assert (
        "--count-from"
        not in read(write(tmp_path, ["query\tcandidate\tlabel", *marks], "t.tsv"), "ranking").report["splits"]
    )


def test_names_that_stand_beside_the_choices(tmp_path: Path) -> None:
    names = ("AB", "12", "ab", "BA")
    given = [(*row, names[i % 4]) for i, row in enumerate(ROWS)]
    table = [{"question": t, "choices": {"text": c, "label": list(n)}, "answerKey": n[r]} for t, c, r, n in given]
    objects = [
        {"question": t, "choices": [{"label": x, "text": y} for x, y in zip(n, c, strict=True)], "answerKey": n[r]}
        for t, c, r, n in given
    ]
    stems = [
        {"id": str(r), "answerKey": n[r], "question": {"stem": t, "choices": one["choices"], "question_concept": "x"}}
        for (t, _, r, n), one in zip(given, objects, strict=True)
    ]
    keys = [{"question": t, "options": dict(zip(n, c, strict=True)), "answer_idx": n[r]} for t, c, r, n in given]
    texts = [{**row, "answer_idx": c[r]} for row, (_, c, r, _) in zip(keys, given, strict=True)]
    for lines in (table, objects, stems, keys, texts):
        data = read(write(tmp_path, lines))
        assert rows(data) == ROWS
        assert all(type(example.inputs["choices"]) is tuple for example in data.train.examples)
        assert "Labels are looked up in the names" in data.report["splits"]
    with pytest.raises(DataError, match="the label 'C' is no choice") as caught:
        read(write(tmp_path, [*table, table[0] | {"answerKey": "C"}]))
    assert caught.value.expected == "one of A, B"
    with pytest.raises(DataError, match="not a list of strings"):
        read(write(tmp_path, [*table, {**table[0], "choices": {"text": ["a", "b"], "label": ["A"]}}]))
    words = [{"tokens": [{"text": "a", "label": "B"}], "tags": ["O"]}] * 20
    with pytest.raises(DataError, match="a list of objects, where its words are needed"):
        read(write(tmp_path, words), "tagging")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for lines in (table, objects):
        parquet.write_table(arrow.Table.from_pylist(lines), tmp_path / "t.parquet")
        assert rows(read(tmp_path / "t.parquet")) == ROWS


def test_a_letter_may_be_read_in_two_ways(tmp_path: Path) -> None:
    lines = [{"text": f"t {i}", "choices": ["B", "A"], "label": "A"} for i in range(20)]
    with pytest.raises(DataError, match="in two ways") as caught:
        read(write(tmp_path, lines))
    assert "--count-from 0" in caught.value.do
    assert {right for _, _, right in rows(read(write(tmp_path, lines), count_from="0"))} == {0}
    same = [line | {"choices": ["A", "B"]} for line in lines]
    assert {right for _, _, right in rows(read(write(tmp_path, same)))} == {0}
    with pytest.raises(DataError, match="the label 'C' is no choice") as caught:
        read(write(tmp_path, [line | {"label": "C"} for line in lists()]))
    assert "its letter, from A to B" in caught.value.expected
    header, body = "text,D,C,label", [f"t {i},d {i},c {i},{'CD'[i % 2]}" for i in range(20)]
    swapped = rows(read(write(tmp_path, [header, *body], "t.csv"), choices=("D", "C")))
    assert [choices[right][0] for _, choices, right in swapped] == ["c", "d"] * 10, "a column's letter is its own"


def test_published_layouts_are_found_by_name(tmp_path: Path) -> None:
    ends = {f"ending{i}": f"e{i}" for i in range(4)}
    swag = [{"startphrase": f"s {i}", "sent1": "a", "sent2": "b", **ends, "label": i % 4} for i in range(20)]
    data = read(write(tmp_path, swag))
    assert (data.task.text, data.task.settings.choices) == ("startphrase", tuple(ends))
    hella = [{"ctx_a": "a", "ctx": f"c {i}", "endings": list(ends.values()), "label": str(i % 4)} for i in range(20)]
    assert read(write(tmp_path, hella)).task.text == "ctx"
    race = [{"article": "a", "question": f"q {i}", "options": ["x", "y"], "answer": "AB"[i % 2]} for i in range(20)]
    data = read(write(tmp_path, race))
    assert (data.task.text, data.task.label) == ("article+question", "answer")
    four = ["question,A,B,C,D,E,answer", *(f"q {i},a,b,c,d,e,{'ABCDE'[i % 5]}" for i in range(20))]
    assert {right for _, _, right in rows(read(write(tmp_path, four, "t.csv")))} == set(range(5))
    fewer = [line.replace(",e,", ",,") for line in four if not line.endswith(",E")]
    data = read(write(tmp_path, fewer, "t.csv"))
    assert {choices for _, choices, _ in rows(data)} == {("a", "b", "c", "d")}
    for wrong, what in (("q,a,b,c,d,,E", "the label 'E' is no choice"), ("q,a,,c,d,e,A", "choice 2 of 5 is empty")):
        with pytest.raises(DataError, match=what):
            read(write(tmp_path, [*fewer, wrong], "t.csv"))
    spaced = ["question,option 1,option 2,answer", *(f"q {i},a,b,{i % 2 + 1}" for i in range(20))]
    assert read(write(tmp_path, spaced, "t.csv"), count_from="1").task.settings.choices == ("option 1", "option 2")
    from_one = ["question,A,B,C,D,answer", *(f"q {i},a,b,c,d,{4 - i % 4}" for i in range(20))]
    with pytest.raises(DataError, match="the label '4' is no choice") as caught:
        read(write(tmp_path, from_one, "t.csv"))
    assert "--count-from 1" in caught.value.do
    with pytest.raises(DataError, match="the choices are a list written as text") as caught:
        read(write(tmp_path, ["text,choices,label", *[f"t {i},\"['a', 'b']\",0" for i in range(20)]], "t.csv"))
    assert "JSONL" in caught.value.do


def test_a_question_is_part_of_its_text(tmp_path: Path) -> None:
    asked = [{"premise": text, "question": ("cause", "effect", "Why?")[i % 3], "choices": choices, "label": right}
             for i, (text, choices, right) in enumerate(ROWS)]  # fmt: skip
    path = write(tmp_path, asked)
    data = read(path)
    assert data.task.text == "premise+question"
    assert [text for text, _, _ in rows(data)][:3] == [
        "text 0 What was the CAUSE of this?",
        "text 1 What happened as a RESULT?",
        "text 2 Why?",
    ]
    assert rows(read(path, text="premise")) == ROWS
    assert rows(read(path, text="question+premise"))[0][0] == "What was the CAUSE of this? text 0"


def test_choices_differ_in_number_and_relevant_ones_too(tmp_path: Path) -> None:
    given = [{"query": f"q {i}", "candidates": [f"c {j}" for j in range(2 + i % 3)], "labels": [i % 5 > 0] * 0
              + [int(j <= i % 3) * int(i % 5 > 0) for j in range(2 + i % 3)]} for i in range(40)]  # fmt: skip
    data = read(write(tmp_path, given), "ranking")
    found = data.report["choices"]["train"]
    assert found["choices"] == {"least": 2, "median": 3, "most": 4} and found["most_frequent_place"] == 1
    without = sum(data.report["choices"][name]["without_right"] for name in data.splits)
    assert without == 8 and any("without a relevant candidate" in line for line in data.report["warnings"])
    assert data.train.targets.counts.max() == 4
    with pytest.raises(DataError, match="not exactly one choice is right"):
        read(write(tmp_path, given))


@pytest.mark.parametrize(
    ("line", "what", "more"),
    [
        ({"label": "c 1"}, "the label 'c 1' is no choice", "the text of a choice, or its number, from 0 to 1"),
        ({"label": 2}, "the label '2' is no choice", "--count-from 1"),
        ({"label": -1}, "the label '-1' is no choice", ""),
        ({"label": None}, "'label' is null", ""),
        ({"choices": ["a"]}, "a row with a single choice", "two or more"),
        ({"choices": []}, "a row without choices", ""),
        ({"choices": ["a", " "]}, "choice 2 of 2 is empty", ""),
        ({"choices": ["a", "a"]}, "the same choice is right and wrong", "'a'"),
        ({"choices": "a"}, "not a list of strings", ""),
        ({"choices": ["a", 1]}, "not a list of strings", ""),
        ({"text": " "}, "the text is empty", ""),
        ({"label": [0, 0]}, "not exactly one choice is right", "0 of 2"),
        ({"label": [1, 0, 0]}, "the numbers of choices and marks differ", "2 choices, 3 marks"),
        ({"label": [2, 0]}, "a candidate is right or not", "grades"),
    ],
)
def test_bad_rows(tmp_path: Path, line: dict[str, Any], what: str, more: str) -> None:
    path = write(tmp_path, [*lists(), {"text": "t", "choices": ["a", "b"], "label": 1} | line])
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.where == f"{path}:21" and what in str(caught.value)
    assert more in str(caught.value)


def test_bad_rows_of_single_candidates(tmp_path: Path) -> None:
    good = [f"q {i}\t{c}\t{int(c == 'a')}" for i in range(12) for c in "ab"]
    for row, what in (("q 3\tz\t0", "are not together"), ("q 12\tz\tyes", "'yes'"), ("q 12\tz\t1", "single choice")):
        with pytest.raises(DataError, match=what) as caught:
            read(write(tmp_path, ["query\tcandidate\trelevance", *good, row], "t.tsv"), "ranking")
        assert caught.value.where.endswith("t.tsv:26")


def test_repeated_choices_of_one_mark_are_kept(tmp_path: Path) -> None:
    given = [{"text": text, "choices": ["x", "x", "y"], "label": "y"} for text, _, _ in ROWS]
    assert {choices for _, choices, _ in rows(read(write(tmp_path, given)))} == {("x", "x", "y")}


@pytest.mark.parametrize(
    ("header", "flags", "what"),
    [
        ("text\tchoice1\tlabel", {}, "no column of choices"),
        ("text\tchoice1\tchoice2\toption1\toption2\tlabel", {}, "more than one column could be the choices"),
        ("text\tquery\tchoice1\tchoice2\tlabel", {}, "more than one column could be the text"),
        ("t\tchoice1\tchoice2\tlabel", {}, "no column 'text'"),
        ("text\tchoice1\tchoice2\tgold", {}, "no column 'label'"),
        ("text\tchoice1\tchoice2\tlabel", {"choices": ("choice1", "choice3")}, "no column 'choice3'"),
        ("text\tchoice1\tchoice2\tlabel", {"text": "label"}, "used twice"),
        ("text\tchoice1\tchoice2\tlabel", {"text_a": "a", "text_b": "b"}, "one text with its choices"),
    ],
)
def test_columns(tmp_path: Path, header: str, flags: dict[str, Any], what: str) -> None:
    body = ["\t".join("abcdef"[: header.count("\t") + 1])] * 20
    with pytest.raises((ConfigError, DataError), match=what):
        read(write(tmp_path, [header, *body], "t.tsv"), **flags)


def test_files_of_other_splits_have_the_same_columns(tmp_path: Path) -> None:
    train = write(tmp_path, columns(), "train.tsv")
    test = write(tmp_path, [line.replace("premise", "context") for line in columns()], "test.tsv")
    with pytest.raises(DataError, match=r"test.tsv:1: no column 'premise'"):
        read(train, test=test)
