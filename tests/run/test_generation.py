"""Tasks whose answers are texts, with the baselines that write: trained, compared, verified, asked, scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graftwork as gw
from graftwork.compare.majority_floor import floor_name
from graftwork.compare.written_report import written_cells, written_lines
from graftwork.core.task import Task
from graftwork.io.files import read_json
from graftwork.receipts.verify import Verifier
from graftwork.registry import methods
from graftwork.testing import tiny_dataset

THINGS = ("house", "tree", "boat", "dog", "cat")
BASELINES = ["copy_source", "first_sentence", "majority", "translation_memory"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Sentences and their targets; every tenth has a second reference, and most sources a number."""
    path = tmp_path / "rows.jsonl"
    said = [(THINGS[row % 5], 3 * row) for row in range(60)]
    listed = [
        {"source": f"A {thing} is here. It has {n} doors.", "target": [f"{n} doors of a {thing}"]} for thing, n in said
    ]
    for row in listed[::10]:
        row["target"] = [*row["target"], "another way to say it"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in listed), encoding="utf-8")
    return path


def test_baselines_make_a_board(rows: Path, tmp_path: Path) -> None:
    task = Task.from_file(rows, kind="generation")
    board = gw.compare(task, seeds=1, backbone="tiny_text", runs=str(tmp_path / "runs"), out=tmp_path / "out", jobs=1)
    assert sorted(row["method"] for row in board.rows) == BASELINES
    assert board.content["headline_metric"] == "chrf" and {"bleu", "rougel", "exact_match"} < {*board.rows[0]["scores"]}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What was written" in page and "doors of a" in page and "of every class" not in page
    assert floor_name(board.content["task"]) == "the most frequent text" and "the majority class." not in page
    cells = {name: rest for name, *rest in written_cells(board.content)}
    assert next(iter(cells)) == "(references)" and float(cells["(references)"][0]) > 0
    assert cells["copy_source"] == ["0.0", "0.0", "0", "0", "0"]
    assert cells["translation_memory"][:2] == ["0.0", "0.0"] and len(written_lines(board.content)) == 6
    assert board.content["signatures"]["bleu"].startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert any("chrf has the signature nrefs:var|" in note for note in board.content["notes"])
    shown = next(row for row in board.content["written"]["methods"] if row["method"] == "translation_memory")
    assert shown["worst"][0]["score"] <= shown["median"][0]["score"] and shown["worst"][0]["references"]


def test_a_run_is_verified_asked_and_scored(rows: Path, tmp_path: Path) -> None:
    run = gw.train(Task.from_file(rows, kind="generation"), method="translation_memory", runs=str(tmp_path / "runs"))
    scratch = tmp_path / "again"
    scratch.mkdir()
    assert Verifier(scratch).verify(run.folder).verdict == "bitwise equal"
    assert read_json(run.folder / "receipt.json")["outcome"]["signatures"].keys() == {"bleu", "chrf"}
    module = gw.TaskModule.load(run.folder / "module")
    (answer,) = module.predict(["A boat is here. It has 6 doors."])
    assert answer["text"].endswith("doors of a boat") and 0 < answer["probability"] <= 1 and not answer["cut"]
    found = gw.score(module, rows)
    assert 0 < found["scores"]["bleu"]["score"] <= 1 and found["majority"]["chrf"] < found["scores"]["chrf"]["score"]
    asked = read_json(run.folder / "module" / "module.json")["task"]
    assert asked["kind"] == "generation" and "longest" not in asked


@pytest.mark.parametrize("name", ["copy_source", "first_sentence", "translation_memory"])
def test_what_writes_a_text_of_one_text_fits_nothing_else(name: str) -> None:
    method, task = methods.get(name)(), Task("t", Path(), kind="generation")
    assert not method.unfit(task, None) and "has two" in method.unfit(task.resolved(text_a="a", text_b="b"), None)
    assert "reads sounds" in method.unfit(task.resolved(sound="audio"), None)
    assert "are none" in method.unfit(tiny_dataset().task, None)


def test_a_sentence_ends_before_white_space_or_a_line() -> None:
    from graftwork.methods.first_sentence import first_sentence

    told = {
        " Is 3.5 it? Yes.": "Is 3.5 it?",
        "Line\nnext": "Line",
        "很好。不": "很好。",
        'He said "no." And': 'He said "no."',
        "": "",
    }
    assert {text: first_sentence(text) for text in told} == told
