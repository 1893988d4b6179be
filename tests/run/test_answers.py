"""Answers to a file: every shape, whole or not at all, and errors with a line."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.data.table import open_table
from graftwork.errors import ConfigError, DataError, GraftworkError, StorageError
from graftwork.run import answers
from graftwork.run.answers import answer_file
from graftwork.run.task_module import TaskModule
from graftwork.run.train import train

TEXTS = ["good film", 'bad, "sad"\nfilm', "warm\tand fine", "cold ünd 好"]


@pytest.fixture
def make(write: Callable[..., Path], tmp_path: Path) -> Callable[..., TaskModule]:
    def trained(kind: str = "classification", pair: bool = False, method: str = "tfidf_svm") -> TaskModule:
        task = Task.from_file(write(kind, pair), kind=kind)
        epochs = Recipe(epochs=1).epochs
        return train(task, method=method, backbone="tiny_text", epochs=epochs, runs=tmp_path / "runs").module

    return trained


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def refuse(line: str) -> None:
    raise AssertionError(f"echoed {line}")


def ask(module: TaskModule, source: Path, out: Path) -> int:
    return answer_file(module, source, out, refuse).rows


def test_jsonl_has_the_texts_and_the_whole_answer(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, out = make(), tmp_path / "out.jsonl"
    source = write_rows(tmp_path / "in.csv", [{"id": str(i), "text": text} for i, text in enumerate(TEXTS)])
    assert ask(module, source, out) == len(TEXTS)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = module.predict(TEXTS)
    assert lines == [{"text": text} | answer for text, answer in zip(TEXTS, expected, strict=True)]


def test_csv_can_be_read_back(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, out = make(), tmp_path / "out.csv"
    assert ask(module, write_rows(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS]), out) == len(TEXTS)
    with out.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["text", "label", "p(bad)", "p(good)"]
    assert [row["text"] for row in rows] == TEXTS
    for row, answer in zip(rows, module.predict(TEXTS), strict=True):
        assert row["label"] == answer["label"] and float(row["p(bad)"]) == answer["probabilities"]["bad"]
    assert len(list(open_table(out).rows(["text", "label"]))) == len(TEXTS)


def test_tsv_is_never_quoted(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, out = make(), tmp_path / "out.tsv"
    assert ask(module, write_rows(tmp_path / "in.csv", [{"text": text} for text in TEXTS]), out) == len(TEXTS)
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {4}
    assert [row[0] for row in rows[1:]] == ["good film", 'bad, "sad" film', "warm and fine", "cold ünd 好"]


def test_several_labels_are_joined_as_they_are_read(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make("multilabel", method="majority")
    source = write_rows(tmp_path / "in.csv", [{"text": "x"}])
    module.predict = lambda texts: [{"label": ["bad", "good"], "probabilities": {"bad": 0.9, "good": 0.8}}]  # type: ignore[method-assign]
    ask(module, source, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["text,label,p(bad),p(good)", "x,bad|good,0.9,0.8"]


def test_numbers(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make("regression", method="majority")
    ask(module, write_rows(tmp_path / "in.csv", [{"text": "x"}]), tmp_path / "out.csv")
    header, line = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "text,value" and float(line.split(",")[1]) == module.predict(["x"])[0]["value"]


def test_pairs(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make(pair=True)
    source = write_rows(tmp_path / "in.csv", [{"text_b": "bad film", "text_a": "good film"}])
    ask(module, source, tmp_path / "out.jsonl")
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert line == {"text_a": "good film", "text_b": "bad film"} | module.predict([("good film", "bad film")])[0]


def test_without_a_file_lines_are_echoed(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, said = make(), []
    done = answer_file(module, write_rows(tmp_path / "in.csv", [{"text": t} for t in TEXTS]), None, said.append)
    assert done.rows == len(said) == len(TEXTS) and json.loads(said[1])["text"] == TEXTS[1]


def test_a_file_larger_than_a_chunk(
    make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ROWS_AT_ONCE", 3)
    texts = [f"film {number} {'good' if number % 3 else 'bad'}" for number in range(10)]
    module, source = make(), write_rows(tmp_path / "in.csv", [{"text": text} for text in texts])
    assert ask(module, source, tmp_path / "out.csv") == 10
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["text", *texts]


def test_gzip_and_the_column_sentence(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    path = tmp_path / "in.tsv.gz"
    path.write_bytes(gzip.compress(b"sentence\ngood film\n"))
    assert ask(make(), path, tmp_path / "out.jsonl") == 1
    assert json.loads((tmp_path / "out.jsonl").read_text())["text"] == "good film"


def test_long_texts_are_counted(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make(method="lora")
    source = write_rows(tmp_path / "in.csv", [{"text": "good"}, {"text": "good " * 100}])
    assert answer_file(module, source, tmp_path / "out.jsonl", refuse).cut == 1


def bad_column(folder: Path) -> tuple[Path, Path]:
    return write_rows(folder / "in.csv", [{"txet": "good"}]), folder / "out.csv"


def bad_text(folder: Path) -> tuple[Path, Path]:
    return write_rows(folder / "in.csv", [{"text": "good"}, {"text": " "}]), folder / "out.csv"


def bad_suffix(folder: Path) -> tuple[Path, Path]:
    return write_rows(folder / "in.csv", [{"text": "good"}]), folder / "out.xlsx"


def bad_source(folder: Path) -> tuple[Path, Path]:
    return folder / "nothing.csv", folder / "out.csv"


def bad_folder(folder: Path) -> tuple[Path, Path]:
    return write_rows(folder / "in.csv", [{"text": "good"}]), folder / "no" / "out.csv"


def same_file(folder: Path) -> tuple[Path, Path]:
    return write_rows(folder / "in.csv", [{"text": "good"}]), folder / "in.csv"


@pytest.mark.parametrize(
    ("case", "error", "message"),
    [
        (bad_column, DataError, r"in.csv:1: no column 'text'[\s\S]*txet[\s\S]*did you mean --text txet\?"),
        (bad_text, DataError, r"in.csv:3: the text is empty"),
        (bad_suffix, ConfigError, r"unknown suffix '.xlsx'[\s\S]*\.jsonl, \.csv, \.tsv"),
        (bad_source, StorageError, "no such file"),
        (bad_folder, StorageError, "no such file or folder"),
        (same_file, ConfigError, "the same file"),
    ],
)
def test_mistakes_leave_no_file(
    case: Callable[[Path], tuple[Path, Path]],
    error: type[GraftworkError],
    message: str,
    make: Callable[..., TaskModule],
    tmp_path: Path,
) -> None:
    source, out = case(tmp_path)
    module, before = make(), {path.name for path in tmp_path.iterdir()}
    with pytest.raises(error, match=message):
        ask(module, source, out)
    assert {path.name for path in tmp_path.iterdir()} == before | {"classification.csv", "runs"}


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_leaves_the_old_file(
    error: BaseException, make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ROWS_AT_ONCE", 2)
    module, out = make(), tmp_path / "out.csv"
    source = write_rows(tmp_path / "in.csv", [{"text": text} for text in TEXTS])
    out.write_text("old")
    before, real, calls = set(tmp_path.iterdir()), module.predict, []

    def fail_later(texts: Any) -> Any:
        calls.append(texts)
        if len(calls) == 2:
            raise error
        return real(texts)

    module.predict = fail_later  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        ask(module, source, out)
    assert len(calls) == 2 and out.read_text() == "old" and set(tmp_path.iterdir()) == before
