"""What is written in a format is what is read, whatever the texts; and bad rows never change the good ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftwork.core.task import Task
from graftwork.data.load import records_of
from graftwork.data.readers.character_offsets import Mark, tagged
from graftwork.data.readers.columns import table_of
from graftwork.data.readers.questions import read_questions
from graftwork.data.readers.rejects import Rejects
from graftwork.data.readers.table import open_table
from graftwork.data.readers.word_vector_files import read_word_vectors, write_word_vectors
from graftwork.errors import DataError
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.registry import kinds
from graftwork.targets.tag_spans import BEGIN, INSIDE, OUTSIDE
from graftwork.targets.words import cut_words, word_places

# No half characters, no NUL and no byte-order mark, which means something else at the beginning of a file.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")
TEXT = st.text(CHARACTERS)
FIELD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff\t\n\r"), min_size=1)
WORD = st.text(
    st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"], exclude_characters="\ufeff"), min_size=1
)
ENDS = st.sampled_from(["\n", "\r\n"])


def rows_of(path: Path, label: str | None = "label") -> list[tuple[Any, ...]]:
    table = open_table(path)
    return [row.cells for row in table.rows(table.header, label)]


def write(path: Path, content: str, mark: bool = False, packed: bool = False) -> Path:
    raw = b"\xef\xbb\xbf" * mark + content.encode()
    path = path.with_name(path.name + ".gz") if packed else path
    path.write_bytes(gzip.compress(raw, 1) if packed else raw)
    return path


def field(cell: str, always: bool) -> str:
    """As RFC 4180 has it: in quotes where it must be, or always. Python's own writer leaves a lone CR bare."""
    return '"' + cell.replace('"', '""') + '"' if always or any(char in cell for char in '",\r\n') else cell


@given(
    rows=st.lists(st.tuples(TEXT, TEXT), min_size=1),
    end=ENDS,
    always=st.booleans(),
    mark=st.booleans(),
    packed=st.booleans(),
)
def test_csv(place: Path, rows: list[tuple[str, str]], end: str, always: bool, mark: bool, packed: bool) -> None:
    lines = [",".join(field(cell, always) for cell in row) for row in [("text", "label"), *rows]]
    content = end.join(lines) + end
    assert rows_of(write(place / "t.csv", content, mark, packed)) == rows


@given(rows=st.lists(st.tuples(FIELD, FIELD), min_size=1), end=ENDS, mark=st.booleans(), packed=st.booleans())
def test_tsv(place: Path, rows: list[tuple[str, str]], end: str, mark: bool, packed: bool) -> None:
    lines = ["text\tlabel", *(f"{text}\t{label}" for text, label in rows)]
    assert rows_of(write(place / "t.tsv", end.join(lines) + end, mark, packed)) == rows


LABELS = st.one_of(TEXT, st.booleans(), st.integers(), st.lists(TEXT).map(tuple))


@given(
    rows=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), LABELS), min_size=1),
    end=ENDS,
    escaped=st.booleans(),
)
def test_jsonl(place: Path, rows: list[tuple[str, Any]], end: str, escaped: bool) -> None:
    lines = [json.dumps({"text": text, "label": label}, ensure_ascii=escaped) for text, label in rows]
    expected = [(text, json.dumps(label) if isinstance(label, bool | int) else label) for text, label in rows]
    assert rows_of(write(place / "t.jsonl", end.join(lines) + end)) == expected


PLAIN_WORD = WORD.filter(lambda word: not word.startswith("#") and word != "-DOCSTART-" and bool(word.strip()))


@given(
    sentences=st.lists(st.lists(st.tuples(PLAIN_WORD, PLAIN_WORD), min_size=1), min_size=1),
    end=ENDS,
    between=st.sampled_from("\t "),
)
def test_conll(place: Path, sentences: list[list[tuple[str, str]]], end: str, between: str) -> None:
    text = (end * 2).join(end.join(between.join(word) for word in sentence) for sentence in sentences)
    expected = [tuple(map(tuple, zip(*sentence, strict=True))) for sentence in sentences]
    assert rows_of(write(place / "t.conll", text), "tags") == expected


@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1))
def test_parquet(place: Path, rows: list[tuple[str, str]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts, labels = (list(column) for column in zip(*rows, strict=True))
    parquet.write_table(pyarrow.table({"text": texts, "label": labels}), place / "t.parquet")
    assert rows_of(place / "t.parquet") == rows


@given(data=st.data(), context=TEXT.filter(lambda text: bool(text.strip())), lines=st.booleans())
def test_answers_stand_where_they_were_put(place: Path, data: st.DataObject, context: str, lines: bool) -> None:
    start = data.draw(st.integers(0, len(context) - 1))
    answer = context[start : data.draw(st.integers(start + 1, len(context)))]
    if not answer.strip() or not cut_words(answer):
        return
    asked = {"id": "1", "question": "What?", "answers": [{"text": answer, "answer_start": start}]}
    if lines:
        path = write(place / "q.jsonl", json.dumps({"context": context, **asked}) + "\n")
    else:
        path = write(place / "q.json", json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [asked]}]}]}))
    files = dict.fromkeys(("train", "validation", "test"), path)
    found = read_questions(Task("t", path, kind="span"), files, {name: Rejects() for name in files})
    (example,) = found.examples["train"]
    assert example.source == context and example.inputs["words"] == cut_words(context)
    assert [(gold.text, gold.start) for gold in example.target] == [(answer, start)]


@given(text=TEXT, data=st.data())
def test_spans_become_tags_and_tags_spans(text: str, data: st.DataObject) -> None:
    words = cut_words(text)
    places = word_places(words, text)
    borders = sorted(data.draw(st.sets(st.integers(0, len(words)), max_size=6)))
    spans = list(zip(borders[::2], borders[1::2], strict=False))
    marks = [Mark(places[first][0], places[last - 1][1], f"T{n % 2}", "here") for n, (first, last) in enumerate(spans)]
    found = tagged(text, data.draw(st.permutations(marks)))
    expected = [OUTSIDE] * len(words)
    for n, (first, last) in enumerate(spans):
        expected[first:last] = [BEGIN + f"T{n % 2}", *[INSIDE + f"T{n % 2}"] * (last - first - 1)]
    assert (found.words, found.tags, found.rounded) == (words, tuple(expected), 0)


def plain(word: str) -> bool:
    return len(word.split()) == 1 and len(word.encode()) < 100


@given(words=st.lists(WORD.filter(plain), min_size=1, unique=True), width=st.integers(1, 5), data=st.data(),
       suffix=st.sampled_from([".txt", ".vec", ".bin", ".txt.gz", ".bin.gz"]))  # fmt: skip
def test_word_vectors(place: Path, words: list[str], width: int, data: st.DataObject, suffix: str) -> None:
    numbers = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=width, max_size=width)
    table = np.array([data.draw(numbers) for _ in words], np.float32)
    write_word_vectors(place / f"v{suffix}", WordVectors(tuple(words), table))
    found = read_word_vectors(place / f"v{suffix}")
    assert found.words == tuple(words) and found.dropped == 0
    assert found.table.tobytes() == table.tobytes() or np.array_equal(found.table, table)  # -0.0 is 0.0


BAD = st.sampled_from(["alone", "a\tb\tc", "\tx", "x\t", "  \tx"])


@given(lines=st.lists(st.one_of(st.tuples(FIELD.filter(str.strip), FIELD.filter(str.strip)), BAD)))
def test_rows_set_aside_change_no_other(place: Path, lines: list[tuple[str, str] | str]) -> None:
    good = [line for line in lines if isinstance(line, tuple)]
    path = write(
        place / "t.tsv",
        "\n".join(["text\tlabel", *("\t".join(line) if isinstance(line, tuple) else line for line in lines)]) + "\n",
    )
    task, kind = Task("t", path, text="text", label="label"), kinds.get("classification")
    aside, table = Rejects(aside=True), table_of(path, "label", False)
    bad = [number for number, line in enumerate(lines, 2) if isinstance(line, str)]
    if not good:
        with pytest.raises(DataError):
            list(records_of(task, kind, table, aside))
    else:
        records = list(records_of(task, kind, table, aside))
        assert [(record.inputs["text"], record.target) for record in records] == good
    assert [one.line for one in aside.found] == bad
    if bad:
        with pytest.raises(DataError) as caught:
            list(records_of(task, kind, table, Rejects()))
        assert caught.value.where == f"{path}:{bad[0]}"
