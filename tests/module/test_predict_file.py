"""Answers to a file: every shape, whole or not at all, and errors with a line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.core.run import Recipe
from graftwork.core.task import Task
from graftwork.data.readers.rejects import Bad
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError, GraftworkError, StorageError
from graftwork.module import predict_file, predict_many
from graftwork.module.inputs import OF_ROLES
from graftwork.module.predict_file import answer_file
from graftwork.module.task_module import TaskModule
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
    return answer_file([module], source, out, refuse).rows


def test_jsonl_has_the_texts_and_the_whole_answer(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, out = make(), tmp_path / "out.jsonl"
    source = write_rows(tmp_path / "in.csv", [{"id": str(i), "text": text} for i, text in enumerate(TEXTS)])
    assert ask(module, source, out) == len(TEXTS)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    expected = module.predict(TEXTS)
    assert lines == [{"text": text} | answer for text, answer in zip(TEXTS, expected, strict=True)]


def test_columns_that_are_kept_stand_before_the_answer(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, out = make(), tmp_path / "out.csv"
    rows = [{"id": number, "label": "new", "more": [1], "text": text} for number, text in enumerate(TEXTS, 7)]
    keep = ["id", "label", "id"]
    answer_file([module, module], write_rows(tmp_path / "in.jsonl", rows), out, refuse, keep=keep)
    with out.open(newline="", encoding="utf-8") as stream:
        written = list(csv.DictReader(stream))
    name = module.task.name
    assert list(written[0])[:4] == ["id", "label", "text", "predicted.label"] and f"{name}.label" in written[0]
    assert [(row["id"], row["text"]) for row in written] == [(str(row["id"]), row["text"]) for row in rows]
    assert [row["predicted.label"] for row in written] == [answer["label"] for answer in module.predict(TEXTS)]


def test_kept_columns_of_rows_that_are_set_aside(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    """A broken row, a cell that can't be kept, and a row without a text: what is kept stays with its row."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = ['{"text": "fine", "id": "a"}', "{", '{"text": "bad", "id": null}', '{"text": " ", "id": "d"}']
    source.write_text("\n".join([*texts, '{"text": "good", "id": ["e", "f"]}\n']), encoding="utf-8")
    answer_file([make()], source, out, refuse, rejects=tmp_path / "bad.jsonl", keep=["id"])
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(line["line"], line["id"], line["text"]) for line in lines] == [(1, "a", "fine"), (5, ["e", "f"], "good")]
    assert [json.loads(line)["line"] for line in (tmp_path / "bad.jsonl").read_text("utf-8").splitlines()] == [2, 3, 4]
    with pytest.raises(ConfigError, match="no column 'ID'"):
        answer_file([make()], source, out, refuse, keep=["ID"])


def test_a_kept_column_counts_before_an_input_of_its_name(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    source, out = write_rows(tmp_path / "in.csv", [{"text": "old", "body": "good film"}]), tmp_path / "out.jsonl"
    module = make()
    answer_file([module], source, out, refuse, columns={"text": "body"}, keep=["text"])
    assert json.loads(out.read_text("utf-8")) == {"text": "old"} | module.predict(["good film"])[0]


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


def test_tsv_keeps_every_character_in_its_place(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    text = "  good \r\n film,  very\u2003good "
    ask(make(), write_rows(tmp_path / "in.jsonl", [{"text": text}]), tmp_path / "out.tsv")
    row = (tmp_path / "out.tsv").read_bytes().decode().split("\n")[1]
    assert row.split("\t")[0] == "  good    film,  very\u2003good "


def test_several_labels_are_joined_as_they_are_read(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make("multilabel", method="majority")
    source = write_rows(tmp_path / "in.csv", [{"text": "x"}])
    module.fitted.logits = lambda examples: np.array([[50.0, 50.0]])  # type: ignore[method-assign]
    ask(module, source, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["text,label,p(bad),p(good)", "x,bad|good,1.0,1.0"]


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
    done = answer_file([module], write_rows(tmp_path / "in.csv", [{"text": t} for t in TEXTS]), None, said.append)
    assert done.rows == len(said) == len(TEXTS) and json.loads(said[1])["text"] == TEXTS[1]


def test_a_file_larger_than_a_chunk(
    make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 3)
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
    assert answer_file([module], source, tmp_path / "out.jsonl", refuse).cut == 1


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
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 2)
    module, out = make(), tmp_path / "out.csv"
    source = write_rows(tmp_path / "in.csv", [{"text": text} for text in TEXTS])
    out.write_text("old")
    before, real, calls = set(tmp_path.iterdir()), module.fitted.logits, []

    def fail_later(examples: Any) -> Any:
        calls.append(examples)
        if len(calls) == 2:
            raise error
        return real(examples)

    module.fitted.logits = fail_later  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        ask(module, source, out)
    assert len(calls) == 2 and out.read_text() == "old" and set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz", "tsv.gz"])
def test_windows_may_end_anywhere(
    suffix: str, make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quoted line ends over the border of a window, a byte-order mark, compressed files: the same rows in order."""
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 2)
    texts = [f'{i}: "good"\n\n\r\nfilm, so {"long " * (i % 3)}' for i in range(9)]
    if suffix.startswith("tsv"):
        texts = [" ".join(text.split()) for text in texts]
    stream = io.StringIO()
    if suffix.startswith("csv"):
        csv.writer(stream).writerows([["text", "id"], *([text, "x"] for text in texts)])
    elif suffix.startswith("tsv"):
        stream.write("".join(f"{line}\n" for line in ["text", *texts]))
    else:
        stream.write("".join(json.dumps({"text": text}) + "\n" for text in texts))
    content = b"\xef\xbb\xbf" + stream.getvalue().encode()
    source, module = tmp_path / f"in.{suffix}", make()
    source.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    for name in ("out.jsonl", "out.csv"):
        assert ask(module, source, tmp_path / name) == 9
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == [{"text": text} | answer for text, answer in zip(texts, module.predict(texts), strict=True)]
    with (tmp_path / "out.csv").open(newline="") as read:
        assert [row["text"] for row in csv.DictReader(read)] == texts


def test_several_modules_answer_side_by_side(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    modules = [make(), make("regression", method="majority"), make("multilabel", method="linear_probe")]
    source = write_rows(tmp_path / "in.csv", [{"text": text} for text in TEXTS])
    assert answer_file(modules, source, tmp_path / "out.jsonl", refuse).rows == len(TEXTS)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    for place, (module, prefix) in enumerate(zip(modules, ("", "regression.", "multilabel."), strict=True)):
        expected = module.predict(TEXTS)
        assert [{key: line[prefix + key] for key in expected[0]} for line in lines] == expected, place
    answer_file(modules, source, tmp_path / "out.csv", refuse)
    header = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.startswith("text,label,p(bad),p(good),regression.value,multilabel.label,multilabel.p(")
    with pytest.raises(ConfigError, match="two modules have the task 'regression'"):
        answer_file([*modules, modules[1]], source, tmp_path / "twice.csv", refuse)
    assert not (tmp_path / "twice.csv").exists()


def test_a_file_that_changes_under_our_hands_leaves_no_answers(
    make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 2)
    module, before = make(), {"classification.csv", "runs", "in.csv"}
    source = write_rows(tmp_path / "in.csv", [{"text": text} for text in ["good"] * 7 + [" "]])
    monkeypatch.setattr(predict_file, "_check", lambda examples, bad, progress: 8)
    with pytest.raises(DataError, match=r"in\.csv:9: the text is empty"):
        ask(module, source, tmp_path / "out.csv")
    assert {path.name for path in tmp_path.iterdir()} == before


def test_progress_ends_at_all_rows(
    make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(predict_file, "CHECKED_AT_ONCE", 5)
    source = write_rows(tmp_path / "in.csv", [{"text": f"film {i}"} for i in range(10)])
    said: list[tuple[float, str]] = []
    answer_file([make()], source, tmp_path / "out.csv", refuse, lambda done, text: said.append((done, text)))
    assert said == [
        (0.0, "5 rows checked"), (0.0, "10 rows checked"),
        (0.4, "4 of 10 rows"), (0.8, "8 of 10 rows"), (1.0, "10 of 10 rows"),
    ]  # fmt: skip


def many_rows(path: Path, rows: int, bad: int = 0) -> Path:
    """So many rows, a quoted line end in every tenth, an empty text in row `bad`."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.write("id,text\n")
        for i in range(1, rows + 1):
            stream.write(f'{i},"film\n{i}"\n' if i % 10 == 0 else f"{i},{' ' if i == bad else f'film {i}'}\n")
    return path


def peak_bytes(module: TaskModule, source: Path, out: Path) -> int:
    tracemalloc.start()
    try:
        ask(module, source, out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows(
    make: Callable[..., TaskModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict_many, "ROWS_AT_ONCE", 100)
    module = make(method="majority")
    ask(module, many_rows(tmp_path / "first.csv", 300), tmp_path / "out.csv")  # what is loaded on first use
    few, many = (peak_bytes(module, many_rows(tmp_path / f"{n}.csv", n), tmp_path / "out.csv") for n in (500, 5000))
    assert many < 1.2 * few


@pytest.mark.slow
def test_memory_does_not_grow_with_many_rows(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make(method="majority")
    ask(module, many_rows(tmp_path / "first.csv", 9000), tmp_path / "out.csv")
    few, many = (
        peak_bytes(module, many_rows(tmp_path / f"{n}.csv", n), tmp_path / "out.csv") for n in (20_000, 100_000)
    )
    assert many < 1.1 * few
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as stream:
        for number, row in enumerate(csv.DictReader(stream), 1):
            assert row["text"] == (f"film\n{number}" if number % 10 == 0 else f"film {number}")
    assert number == 100_000


@pytest.mark.slow
def test_a_bad_row_far_down_leaves_no_file(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module = make(method="majority")
    source = many_rows(tmp_path / "in.csv", 200_000, bad=150_001)
    before = set(tmp_path.iterdir())
    with pytest.raises(DataError, match=r"in\.csv:165002: the text is empty"):  # 15,000 line ends inside quotes
        ask(module, source, tmp_path / "out.csv")
    assert set(tmp_path.iterdir()) == before


def test_bad_rows_are_set_aside_and_the_rest_is_answered(make: Callable[..., TaskModule], tmp_path: Path) -> None:
    module, source, out = make(), tmp_path / "in.csv", tmp_path / "out.jsonl"
    source.write_text("id,text\n1,good film\n2,bad film,more\n3,\n4,fine\n", encoding="utf-8")
    rejects = tmp_path / "rejects.jsonl"
    with pytest.raises(DataError, match=r"in\.csv:3"):
        answer_file([module], source, out, refuse)
    assert not out.exists()
    done = answer_file([module], source, out, refuse, rejects=rejects)
    assert (done.rows, done.rejected) == (2, 2)
    answered = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["line"], line["text"]) for line in answered] == [(2, "good film"), (5, "fine")]
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [line["line"] for line in told] == [3, 4]
    assert told[0]["row"] == "2,bad film,more\n" and "the text is empty" in told[1]["what"]
    source.write_text("id,text\n2,bad film,more\n", encoding="utf-8")
    with pytest.raises(DataError, match="no row of the file can be read"):
        answer_file([module], source, out, refuse, rejects=rejects)
    for other in (source, out):
        with pytest.raises(ConfigError, match="bad rows would be written over"):
            answer_file([module], source, out, refuse, rejects=other)


@pytest.mark.parametrize("column", ["text", "words"])
@pytest.mark.parametrize("given", ["a text", ["a", "text"]])
def test_words_are_given_in_a_text_or_a_list_and_as_nothing_else(column: str, given: Any, tmp_path: Path) -> None:
    others: list[Any] = [5, True, None, [5], ["a"] if isinstance(given, str) else "a"]
    source = write_rows(tmp_path / "in.jsonl", [{column: one} for one in (given, *others, given)])
    found = list(OF_ROLES[("words",)].rows(source, Task("t", source), {})())
    assert [isinstance(one, Bad) for one in found] == [False, *[True] * len(others), False]


@pytest.mark.parametrize(
    "good",
    [
        {"text": "a text"},
        {"text_a": "a text", "text_b": "another"},
        {"words": ["a", "word"]},
        {"question": "which?", "context": "the good one"},
        {"text": "which?", "choices": ["one", "two"]},
    ],
    ids=lambda good: "-".join(good),
)
def test_every_form_yields_what_is_wrong_with_a_row_and_goes_on(good: dict[str, Any], tmp_path: Path) -> None:
    roles = ("question", "words") if "question" in good else tuple(good)
    empty = {name: type(value)() for name, value in good.items()}
    source = write_rows(tmp_path / "in.jsonl", [good, empty, good])
    kind = "choice" if "choices" in good else "classification"
    found = list(OF_ROLES[roles].rows(source, Task("t", source, kind=kind), {})())
    assert [isinstance(one, Bad) for one in found] == [False, True, False]
    assert isinstance(found[1], Bad) and found[1].line == 2
