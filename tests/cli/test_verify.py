"""`graft verify` and `graft receipt`: verdicts, exit codes, and a checklist whose numbers stand in the receipts."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Graft = Callable[..., Any]
Boards = Callable[[str], Any]


@pytest.fixture
def board(boards: Boards, tmp_path: Path) -> Any:
    """A copy of the runs of the finished comparison, to change."""
    found = boards("classification")
    shutil.copytree(found.runs, tmp_path / "runs")
    shutil.copytree(found.folder, tmp_path / "boards" / "tickets")
    return found


def test_a_run_and_its_beginning(graft: Graft, board: Any) -> None:
    run = board.run_of("top_layers:k=1").name
    done = graft("verify", run[:8])
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == f"run          {run}  (top_layers, seed 0)"
    assert lines[1:5] == [
        "record       unchanged",
        "inputs       equal: data, backbone, method, recipe, seed",
        "environment  equal: code, libraries, processor, threads",
        "outcome      bitwise equal",
    ]
    assert lines[-1] == "verdict      bitwise equal"
    assert any(re.fullmatch(r"predictions  (\d+) of \1 the same, no logit differs", line) for line in lines)


@pytest.mark.slow
def test_a_board(graft: Graft, board: Any) -> None:
    content = json.loads(Path("boards/tickets/leaderboard.json").read_text(encoding="utf-8"))
    content["rows"] = [row for row in content["rows"] if row["method"] in ("majority", "linear_probe")]
    Path("boards/tickets/leaderboard.json").write_text(json.dumps(content), encoding="utf-8")
    change(Path("runs") / board.run_of("majority").name / "result.json")
    shutil.rmtree(Path("runs") / board.run_of("linear_probe").name)
    done = graft("verify", "boards/tickets")
    assert done.code == 1
    assert "different: scores" in done.out and "can't be verified" in done.out
    assert done.out.splitlines()[-1] == "6 runs: 1 can't be verified, 4 bitwise equal, 1 different"


def change(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content["scores"]["accuracy"] = 0.999
    path.write_text(json.dumps(content), encoding="utf-8")


def test_what_differs_is_named_and_the_code_is_one(graft: Graft, board: Any) -> None:
    run = Path("runs") / board.run_of("majority").name
    change(run / "result.json")
    done = graft("verify", run)
    assert done.code == 1
    assert "record       scores: recorded accuracy " in done.out
    assert done.out.splitlines()[-1] == "verdict      different: scores"
    found = json.loads(graft("verify", run, "--json").out)
    assert (found["verdict"], found["differences"][0]["about"]) == ("different", "scores")


def test_a_verdict_is_kept_when_asked_and_shown_by_the_receipt(graft: Graft, board: Any) -> None:
    run = Path("runs") / board.run_of("majority").name
    graft("verify", run)
    assert not (run / "verified.jsonl").exists()
    graft("verify", run, "--record")
    assert json.loads((run / "verified.jsonl").read_text(encoding="utf-8"))["verdict"] == "bitwise equal"
    assert re.search(r"^verified     .*: bitwise equal$", graft("receipt", run).out, flags=re.MULTILINE)


@pytest.mark.parametrize("what", ["zzz", "boards"])
def test_what_is_no_run_is_said(graft: Graft, board: Any, what: str) -> None:
    done = graft("verify", what)
    assert (done.code, done.out) == (2, "")
    assert "run" in done.err


def test_data_that_is_gone_is_missed(graft: Graft, board: Any) -> None:
    run = Path("runs") / board.run_of("majority").name
    receipt = json.loads((run / "receipt.json").read_text(encoding="utf-8"))
    path = Path(receipt["data"]["files"]["train"]["path"])
    path.rename(path.with_name("elsewhere.csv"))
    try:
        done = graft("verify", run)
        moved = graft("verify", run, "--data", path.with_name("elsewhere.csv"))
    finally:
        path.with_name("elsewhere.csv").rename(path)
    assert done.code == 2
    assert (
        "the train data of this run is missing" in done.err and receipt["data"]["files"]["train"]["sha256"] in done.err
    )
    assert moved.code == 0, moved.err


def test_a_folder_of_splits_that_was_moved_is_found_whole(graft: Graft, tmp_path: Path) -> None:
    folder = tmp_path / "mood"
    folder.mkdir()
    for name, rows in (("train", 20), ("dev", 4), ("test", 4)):
        lines = [f"{name} number {i}\t{('good', 'bad')[i % 2]}" for i in range(rows)]
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n", encoding="utf-8")
    trained = graft("train", folder, "--method", "majority", "--json")
    assert trained.code == 0, trained.err
    run = json.loads(trained.out)["id"]
    receipt = json.loads((Path("runs") / run / "receipt.json").read_text(encoding="utf-8"))
    assert [Path(file["path"]).name for file in receipt["data"]["files"].values()] == [
        "train.tsv", "dev.tsv", "test.tsv"
    ]  # fmt: skip
    folder.rename(tmp_path / "elsewhere")
    assert graft("verify", run).code == 2
    assert graft("verify", run, "--data", tmp_path / "elsewhere").code == 0


def test_the_receipt_as_a_person_reads_it(graft: Graft, board: Any) -> None:
    run = board.run_of("top_layers:k=1")
    out = graft("receipt", run.name).out
    receipt = json.loads(graft("receipt", run.name, "--json").out)
    assert receipt == json.loads((run / "receipt.json").read_text(encoding="utf-8"))
    for words in (
        "method       top_layers, version ",
        "split        test: ",
        "libraries    python ",
        "seeds        0: init ",
    ):
        assert words in out
    assert receipt["data"]["digest"] in out and receipt["outcome"]["weights"]["sha256"] in out


def numbers(text: str) -> set[str]:
    """Those that stand by themselves, and are no part of a hash, a version or a name."""
    return set(re.findall(r"(?<![\w.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?(?!\w|\.\d|,\d)", text))


def values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from values(inside)
    else:
        yield value


@pytest.mark.parametrize("method", ["top_layers:k=1", "tfidf_svm"])
def test_every_number_of_the_checklist_stands_in_a_receipt_or_is_a_mean_of_some(
    method: str, graft: Graft, board: Any
) -> None:
    from graftwork.receipts.checklist import number
    from graftwork.units import show

    row = next(row for row in board.board["rows"] if row["method"] == method)
    receipts = [json.loads((board.runs / run / "receipt.json").read_text(encoding="utf-8")) for run in row["runs"]]
    out = graft("receipt", row["runs"][0], "--checklist").out
    known = {number(value) for receipt in receipts for value in values(receipt) if isinstance(value, int | float)}
    known |= {
        text for receipt in receipts for value in values(receipt) if isinstance(value, str) for text in numbers(value)
    }
    for metric in receipts[0]["outcome"]["scores"]:
        scores = [receipt["outcome"]["scores"][metric] for receipt in receipts]
        known |= {number(of(scores)) for of in (statistics.fmean, statistics.stdev, statistics.median)}
    known |= {number(count) for count in (len(receipts), 0)} | {"95"}  # the level of every interval
    for name in ("train_seconds", "energy_joules", "peak_memory_bytes"):
        costs = [receipt["price_tag"][name] for receipt in receipts]
        known |= numbers(show(statistics.median(cost["value"] for cost in costs), costs[0]["unit"]))
    told = numbers(out.partition("## Methods")[2])
    assert len(told) > 5
    assert told <= known, told - known
    assert numbers(out.partition("## Methods")[0]) <= known


def test_the_checklist_answers_every_question(graft: Graft, board: Any) -> None:
    run = board.run_of("top_layers:k=1").name
    out = graft("receipt", run, "--checklist").out
    answers = re.findall(r"^- \*\*(.+\?)\*\* (.+)$", out, flags=re.MULTILINE)
    assert len(answers) == 12 and all(len(answer) > 20 for _, answer in answers)
    assert "3 runs with seeds 0, 1, 2, of which 0 failed" in out
    assert "accuracy" in out and ("± " in out or "all runs score alike" in out)


def test_a_checklist_is_no_json(graft: Graft, board: Any) -> None:
    done = graft("receipt", board.run_of("majority").name, "--checklist", "--json")
    assert (done.code, done.out) == (2, "") and "omit one of them" in done.err


def test_a_receipt_that_was_changed_is_not_shown(graft: Graft, board: Any) -> None:
    run = Path("runs") / board.run_of("majority").name
    content = json.loads((run / "receipt.json").read_text(encoding="utf-8"))
    del content["data"]["digest"]
    (run / "receipt.json").write_text(json.dumps(content), encoding="utf-8")
    for command in ("receipt", "verify"):
        done = graft(command, run)
        assert done.code == 2 and "data.digest is missing" in done.err


@pytest.mark.parametrize("line", ["{", "[]", '{"verdict": "bitwise equal"}'])
def test_a_damaged_file_of_verdicts_is_one_message(graft: Graft, board: Any, line: str) -> None:
    run = Path("runs") / board.run_of("majority").name
    (run / "verified.jsonl").write_text(line + "\n", encoding="utf-8")
    done = graft("receipt", run)
    assert (done.code, done.out) == (2, "") and "verified.jsonl: not the verdicts of a run" in done.err
