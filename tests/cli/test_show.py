"""`graft show`: a run by its id, the beginning of it or its folder, and a task module."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftwork.cli.show import profile_lines, run_lines
from graftwork.io.files import write_json
from graftwork.run.store import read_result

Graft = Callable[..., Any]
Boards = Callable[[str], Any]


def test_a_run_by_id_beginning_and_folder(graft: Graft, boards: Boards) -> None:
    board = boards("classification")
    run = board.run_of("top_layers:k=1")
    shown = [graft("show", what, "--runs", board.runs) for what in (run.name, run.name[:9], run)]
    assert {outcome.code for outcome in shown} == {0}
    assert len({outcome.out for outcome in shown}) == 1
    lines = shown[0].out.splitlines()
    assert lines[0] == f"run        {run.name}  (ok)"
    assert lines[1].startswith("task       data (classification, ")
    assert re.fullmatch(r"rows       train \d+; validation \d+; test \d+", lines[2])
    assert lines[3] == "backbone   tiny_text"
    assert lines[4].startswith("method     top_layers (k 1, learning_rate ")
    assert lines[5].startswith("recipe     1 epoch of 32 rows a step, ")
    assert lines[6].startswith("validation accuracy ")
    assert lines[7] == "test       accuracy 100.0, macro_f1 100.0"  # every answer is right: no interval
    assert lines[8] == "price tag"
    assert any(line.startswith("  unknown: ") and "money" in line for line in lines[9:])


def test_the_interval_of_a_run_stands_beside_its_first_score(boards: Boards) -> None:
    run = boards("classification").run_of("top_layers:k=1")
    result = replace(read_result(run / "result.json"), scores={"accuracy": 0.9, "macro_f1": 0.8}, interval=(0.85, 0.94))
    told = "accuracy 90.0 [85.0, 94.0], macro_f1 80.0  (one run; in brackets 95 % over other examples)"
    assert run_lines(run, result)[7] == f"test       {told}"


def test_a_module(graft: Graft, boards: Boards) -> None:
    module = boards("pair").run_of("linear_probe") / "module"
    out = graft("show", module).out
    for words in (
        "classification, 2 labels: different, same",
        "inputs     text_a, text_b",
        "backbone   tiny_text, revision ",
        "method     linear_probe",
        f"one run: {module.parent.name}",
        "predict_latency_seconds",
    ):
        assert words in out
    assert "backbone   none" in graft("show", boards("pair").run_of("majority") / "module").out


def test_json_is_the_receipt(graft: Graft, boards: Boards) -> None:
    run = boards("regression").run_of("linear_probe")
    receipt = json.loads(graft("show", run, "--json").out)
    assert receipt["method"]["name"] == "linear_probe"
    assert receipt["costs"]["train_seconds"]["unit"] == "s"
    assert receipt["question"]["kind"] == "regression"
    module = json.loads(graft("show", run / "module", "--json").out)
    assert module == json.loads((run / "module" / "module.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("what", "words"),
    [("zzz", "unknown run 'zzz'"), ("boards/zzz", "no such run or module"), (".", "neither a run nor a task module")],
)
def test_what_is_not_there_is_said(graft: Graft, boards: Boards, what: str, words: str) -> None:
    done = graft("show", what, "--runs", boards("classification").runs)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_beginning_of_several_runs_is_not_enough(graft: Graft, tmp_path: Path) -> None:
    for name in ("7d0fa", "7d0fb"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "result.json").write_text("{}", encoding="utf-8")
    done = graft("show", "7d0f")
    assert done.code == 2
    assert "'7d0f' begins several runs" in done.err
    assert "7d0fa" in done.err
    assert "7d0fb" in done.err


def test_without_runs_there_is_nothing_to_show(graft: Graft) -> None:
    done = graft("show", "7d0f")
    assert done.code == 2
    assert "no such run or module" in done.err
    assert "graft ls" in done.err
    assert not Path("runs").exists()


def test_the_profile_of_a_run_without_a_wall_time_has_no_shares(tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", {"profile": {"write": 0.0}, "spent": {"wall_seconds": 0.0}})
    assert [line.split()[:2] for line in profile_lines(tmp_path)[1:]] == [["write", "0"], ["in", "all"]]
