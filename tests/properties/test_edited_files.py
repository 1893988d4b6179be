"""Whatever stands in a file, its reader returns rows or refuses it in a whole message, set aside or not."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from graftwork.core.example import plain
from graftwork.core.kind import OfChoices
from graftwork.core.task import Task
from graftwork.data.load import records_of
from graftwork.data.readers.columns import find_columns, table_of
from graftwork.data.readers.questions import read_questions
from graftwork.data.readers.rejects import Rejects
from graftwork.data.readers.table import open_table
from graftwork.data.readers.word_vector_files import read_word_vectors
from graftwork.errors import DataError, GraftworkError, StorageError, printable
from graftwork.io.files import canonical, read_json, safe_load
from graftwork.pretrain.corpus import open_corpus
from graftwork.registry import kinds, suites

SPAN = {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"], "text": "Ann"}}
ANNOTATED = {"id": 1, "data": {"text": "Ann lost it"}, "annotations": [{"result": [SPAN]}]}
ASKED = {"id": "1", "question": "What is long?", "answers": [{"text": "river", "answer_start": 4}]}
ARTICLES = {"data": [{"title": "t", "paragraphs": [{"context": "The river is long.", "qas": [ASKED]}]}]}


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


TABLES = {  # name -> flags, a file that is right
    "a.csv": ({}, b'text,label\r\n"a, b",x\r\nc,y\r\n'),
    "b.tsv": ({"kind": "regression"}, b"text\tlabel\na\t1\nb\t-2.5e3\n"),
    "c.jsonl": ({}, lines({"text": "a", "label": "x"}, {"text": "b", "label": 1})),
    "d.jsonl": ({"kind": "multilabel"}, lines({"text": "a", "label": ["x", "y"]}, {"text": "b", "label": []})),
    "e.jsonl": ({"kind": "choice"}, lines({"text": "q", "choices": ["a", "b"], "label": 1})),
    "f.jsonl": ({"kind": "choice"}, lines({"premise": "p", "choice1": "a", "choice2": "b", "label": 0})),
    "g.tsv": ({"kind": "ranking"}, b"query\tcandidate\trelevance\nq\ta\t1\nq\tb\t0\nr\tc\t1\n"),
    "h.conll": ({"kind": "tagging"}, b"My O\ncard B-THING\n\nis O\nlost O\n"),
    "i.conllu": ({"kind": "tagging"}, b"# text = do\n1\tdo\tdo\tAUX" + b"\t_" * 6 + b"\n\n"),
    "j.jsonl": ({"kind": "tagging"}, lines({"text": "Ann lost it", "entities": [[0, 3, "PER"]]})),
    "k.json": ({"kind": "tagging"}, json.dumps([ANNOTATED]).encode()),
    "brat/l.ann": ({"kind": "tagging"}, b"T1\tPER 0 3\tAnn\nR1\tx Arg1:T1 Arg2:T1\n#1\tN T1\tx\n"),
    "m.json": ({"kind": "span"}, json.dumps(ARTICLES).encode()),
    "n.jsonl": ({"kind": "span"}, lines({"context": "The river is long.", **ASKED})),
}  # fmt: skip
PIECES = (
    '"', "'", ",", "\t", "\n", "\r\n", "\r", "{", "}", "[", "]", ":", "null", "true", "NaN", "-1", "1e999", "9" * 5000,
    "[" * 5000, "0", "text", "label", "O", "I-X", "choices", "id", "result", "type", "end", "T1", "\0", "\u2028",
    "\ufeff", "\\ud83d", "\u00a0", "F32", "shape",
)  # fmt: skip
EDITS = st.lists(
    st.tuples(
        st.integers(0, 300),
        st.integers(0, 9),
        st.one_of(st.sampled_from(PIECES).map(str.encode), st.binary(max_size=4)),
    ),
    min_size=1,
    max_size=3,
)


def edited(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Put something else in the place of a few bytes, several times."""
    for at, count, put in edits:
        at %= len(content) + 1
        content = content[:at] + put + content[at + count :]
    return content


def refusal(read: Callable[[], Any]) -> GraftworkError | None:
    """What a reader refuses a file with, a whole message; any other error is a failure."""
    try:
        read()
    except GraftworkError as error:
        whole = (error.got or error.expected) and error.do
        assert error.where and error.what and (whole or isinstance(error, StorageError)), error.message
        printable(error.message).encode()
        return error
    return None


def read_table(task: Task, rejects: Rejects) -> None:
    if task.kind == "span":
        of_splits = dict.fromkeys(("train", "validation", "test"), rejects)
        asked = read_questions(task, dict.fromkeys(of_splits, task.data), of_splits)
        inputs = [example.inputs for example in asked.examples["train"]]
    else:
        kind = kinds.get(task.kind)
        if not isinstance(kind, OfChoices):
            task = find_columns(task, open_table(task.data), kind.per_word)
        inputs = [row.inputs for row in records_of(task, kind, table_of(task.data, task.label, kind.per_word), rejects)]
    for row in inputs:
        canonical(plain(row)).encode()


@pytest.mark.parametrize("name", TABLES)
@given(edits=EDITS)
def test_a_table(place: Path, name: str, edits: list[tuple[int, int, bytes]]) -> None:
    flags, content = TABLES[name]
    path = place / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(edited(content, edits))
    if path.suffix == ".ann":
        path.with_suffix(".txt").write_text("Ann lost it.\n")
        path = path.parent
    task, aside = Task("t", path, **flags), Rejects(aside=True)
    lenient = refusal(lambda: read_table(task, aside))
    strict = refusal(lambda: read_table(task, Rejects()))
    assert bool(aside.found or lenient) == (strict is not None), "strict or not, the same rows are bad"


OFFICIAL = {  # suite -> task -> file, content
    "glue": {"SST-2": ("SST-2/train.tsv", b"sentence\tlabel\na\t1\n"), "CoLA": ("CoLA/train.tsv", b"gj04\t1\t\tA.\n")},
    "superglue": {
        "BoolQ": ("BoolQ/train.jsonl", lines({"question": "q", "passage": "p", "label": True, "idx": 0})),
        "WiC": ("WiC/train.jsonl", lines({"sentence1": "ab c", "sentence2": "ab d", "start1": 0, "end1": 2, "start2": 0,
                                          "end2": 2, "label": True, "idx": 0})),
        "WSC": ("WSC/train.jsonl", lines({"text": "Mark saw him .", "label": False, "idx": 1, "target": {
            "span1_index": 0, "span1_text": "Mark", "span2_index": 2, "span2_text": "him"}})),
    },
    "squad": {"SQuAD1.1": ("train-v1.1.json", json.dumps(ARTICLES).encode())},
}  # fmt: skip


@pytest.mark.parametrize(("suite", "name"), [(suite, name) for suite, tasks in OFFICIAL.items() for name in tasks])
@given(edits=EDITS)
def test_an_official_file(place: Path, suite: str, name: str, edits: list[tuple[int, int, bytes]]) -> None:
    file, content = OFFICIAL[suite][name]
    (place / file).parent.mkdir(exist_ok=True)
    (place / file).write_bytes(edited(content, edits))
    (task,) = (task for task in suites.get(suite).tasks(place) if task.name == name)
    refusal(lambda: [json.dumps(row).encode() for row in task.train.read()])


OTHERS = {  # name -> content, reader
    "v.txt": (b"the 1 0.5\ncat -1e-3 2\n", read_word_vectors),
    "v.bin": (b"2 1\nthe \0\0\x80?\ncat \0\0\0?\n", read_word_vectors),
    "c.txt": (b"one\ntwo\n\nthree\n", lambda path: list(open_corpus([path]).documents())),
    "c.jsonl": (lines({"text": "a"}, {"text": "b"}), lambda path: list(open_corpus([path]).documents())),
    "t.toml": (b'data = "t.csv"\nkind = "tagging"\nlabels = ["a", "b"]\nsplit_seed = 3\n', Task.from_file),
    "r.json": (b'{"a": [1, 0.5, null, "x"], "b": {"c": true}}', read_json),
    "w.safetensors": (save({"a": torch.ones(2, 3)}), lambda path: safe_load(path, mapped=False)),
}


@pytest.mark.parametrize("name", OTHERS)
@given(edits=EDITS)
def test_another_file(place: Path, name: str, edits: list[tuple[int, int, bytes]]) -> None:
    content, read = OTHERS[name]
    (place / name).write_bytes(edited(content, edits))
    refusal(lambda: read(place / name))


@given(edits=EDITS)
def test_the_program_in_an_archive_of_tensors(place: Path, edits: list[tuple[int, int, bytes]]) -> None:
    """The rest of the archive is whole: a changed byte outside fails its checksums."""
    torch.save({"a": torch.ones(2, 3)}, place / "whole.bin")
    with zipfile.ZipFile(place / "whole.bin") as whole, zipfile.ZipFile(place / "t.bin", "w") as made:
        for record in whole.namelist():
            content = whole.read(record)
            made.writestr(record, edited(content, edits) if record.endswith("data.pkl") else content)
    refusal(lambda: safe_load(place / "t.bin", mapped=False))


def test_a_csv_of_quotes_that_ends_in_a_carriage_return_ends(place: Path) -> None:
    """It was read for ever."""
    (place / "t.csv").write_bytes(b'\r\n",bel\na",ch\r')
    with pytest.raises(DataError):
        read_table(Task("t", place / "t.csv"), Rejects())
    (place / "t.csv").write_bytes(b'text,label\n"x",a\r')
    read_table(Task("t", place / "t.csv"), Rejects())
