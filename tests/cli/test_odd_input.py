"""Odd input that is taken as it stands and reported, and commands that are stopped half-way."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.compare import leaderboard
from graftwork.methods.majority import Constant, Majority

Graft = Callable[..., Any]
Written = Callable[..., Path]

QUICK = ("--backbone", "tiny_text", "--seeds", "1", "--epochs", "1")
HEADER = ("text", "label")
ROWS = [(f"text number {i}", "abc"[i % 3]) for i in range(40)]


def board_of(graft: Graft, data: Path, *flags: object, methods: str = "majority") -> dict[str, Any]:
    done = graft("compare", data, *QUICK, "--methods", methods, *flags, "--json")
    assert done.code == 0, done.err
    board: dict[str, Any] = json.loads(done.out)
    return board


def warnings(board: dict[str, Any]) -> str:
    return "\n".join(board["data_report"]["warnings"])


def test_a_byte_order_mark_is_accepted(graft: Graft, written: Written) -> None:
    plain = written("plain.csv", HEADER, ROWS)
    marked = plain.with_name("marked.csv")
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert board_of(graft, marked)["task"]["data"] == board_of(graft, plain)["task"]["data"]


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names of files are UTF-8 there")
@pytest.mark.parametrize("name", [b"caf\xe9.csv", b"caf\xe9/t.csv"])
def test_a_path_that_is_no_utf_8_is_a_path(name: bytes, graft: Graft, written: Written) -> None:
    plain, odd = written("plain.csv", HEADER, ROWS), Path(os.fsdecode(name))
    odd.parent.mkdir(exist_ok=True)
    plain.rename(odd)
    done = graft("train", odd, "--method", "majority")
    assert done.code == 0, done.err
    (run,) = Path("runs").iterdir()
    recorded = json.loads((run / "receipt.json").read_text(encoding="utf-8"))["data"]["files"]["train"]["path"]
    assert Path(recorded) == odd.resolve()
    assert "bitwise equal" in graft("verify", run).out
    assert graft("compare", odd, "--methods", "majority", "--seeds", "1", "--out", "board").code == 0


def test_na_and_none_are_texts_and_labels(graft: Graft, written: Written) -> None:
    words = ["NA", "None", "nan", "null", "", "-"]
    rows = [(f"{words[i % 4]} {i}", ("NA", "None", "null")[i % 3]) for i in range(40)] + [
        ("NA", "NA"),
        ("None", "None"),
    ]
    board = board_of(graft, written("na.csv", HEADER, rows), methods="majority,tfidf_svm")
    assert board["task"]["labels"] == ["NA", "None", "null"]
    assert sum(board["task"]["rows"].values()) == len(rows)
    run = Path("runs") / board["rows"][0]["runs"][0]
    targets = {json.loads(line)["target"] for line in (run / "predictions.jsonl").read_text("utf-8").splitlines()}
    assert targets == {"NA", "None", "null"}


@pytest.mark.slow
def test_a_text_of_100_000_words_is_cut_counted_and_reported(graft: Graft, written: Written) -> None:
    long = ("a " * 100_000, "a")
    data = written("long.csv", HEADER, [*ROWS, long])
    test = written("test.csv", HEADER, [*((f"unseen {i}", "abc"[i % 3]) for i in range(127)), long])
    flags = (data, "--test", test, *QUICK[:2], "--epochs", "1")
    done = graft("compare", *flags, "--seeds", "1", "--methods", "linear_probe", "--out", "board", "--verbose")
    assert done.code == 0
    report = json.loads(Path("board/leaderboard.json").read_text(encoding="utf-8"))["data_report"]
    assert report["cut"] == {"train": 1, "validation": 0, "test": 1}
    assert (report["words"]["max"], report["words"]["over_1000"]) == (100_000, 2)
    sentence = "Examples longer than tiny_text takes (64 tokens), cut there: 1 of train, 1 of test."
    assert sentence in report["warnings"]
    assert sentence in " ".join(done.out.split())
    assert sentence in Path("board/report.html").read_text(encoding="utf-8")
    assert sentence in graft("train", *flags, "--method", "linear_probe").out


def test_duplicates_across_splits_are_counted_and_reported(graft: Graft, written: Written) -> None:
    test = written("test.csv", HEADER, [*ROWS[:3], ("never seen", "a")])
    board = board_of(graft, written("train.csv", HEADER, ROWS), "--test", test)
    assert board["data_report"]["duplicates_across"]["rows"]["test"] == 3
    assert "3 rows of test (75.0%) have the same text as a row of train" in warnings(board)


def test_drawn_splits_share_no_text(graft: Graft, written: Written) -> None:
    board = board_of(graft, written("twice.csv", HEADER, [*ROWS, *ROWS]))
    assert set(board["data_report"]["duplicates_across"]["rows"].values()) == {0}
    assert "repeat the text of an earlier row" in warnings(board)


def test_conflicting_labels_are_reported(graft: Graft, written: Written) -> None:
    board = board_of(graft, written("odd.csv", HEADER, [*ROWS, ("text number 0", "b"), ("text number 1", "c")]))
    assert board["data_report"]["conflicts"]["groups"] == 2
    assert "Texts that are in several rows with different targets: 2 (4 rows)" in warnings(board)


def test_texts_of_every_alphabet_survive(graft: Graft, written: Written) -> None:
    scripts = ["你好，世界", "مرحبا", "😀👩‍👧", "naïve café", "a\u2028b", "x\x85y", "<b>&amp;</b>", "{{ 7 * 7 }}"]
    rows = [(f"{scripts[i % 8]} {i}", f"{scripts[i % 2]}") for i in range(40)]
    data = written("scripts.csv", HEADER, rows)
    assert graft("compare", data, *QUICK, "--methods", "majority,linear_probe", "--out", "board").code == 0
    board = json.loads(Path("board/leaderboard.json").read_text(encoding="utf-8"))
    assert board["task"]["labels"] == sorted(scripts[:2])


def test_labels_of_odd_characters_survive(graft: Graft, written: Written) -> None:
    labels = ["a\u2028b", "x\x85y", "<script>alert(1)</script>", "[red]", "a|b", "'; DROP TABLE", "plain"]
    rows = [(f"text number {i}", labels[i % 7]) for i in range(84)]
    done = graft(
        "compare", written("odd.csv", HEADER, rows), *QUICK, "--methods", "majority,tfidf_svm", "--out", "board"
    )
    assert done.code == 0, done.err
    board = json.loads(Path("board/leaderboard.json").read_text(encoding="utf-8"))
    assert sorted(board["task"]["labels"]) == sorted(labels)
    assert "<script>alert(1)" not in Path("board/report.html").read_text(encoding="utf-8")


def test_ctrl_c_keeps_finished_runs_and_the_next_call_goes_on(
    graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    fit = Majority.fit

    def counted(self: Majority, bench: Any) -> Constant:
        fitted.append(bench.seed)
        if len(fitted) == 2:
            raise KeyboardInterrupt
        return fit(self, bench)

    monkeypatch.setattr(Majority, "fit", counted)
    command = ("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", "--seeds", "3", "--out", "board")
    stopped = graft(*command)
    assert stopped.code == 130
    assert "finished runs are kept; the same command resumes" in stopped.err
    assert list(Path("board").iterdir()) == []
    runs = list(Path("runs").iterdir())
    assert [(run / "result.json").is_file() for run in runs] == [True]
    again = graft(*command)
    assert again.code == 0
    assert fitted == [0, 1, 1, 2]
    assert "1 of 3 runs existed already" in again.out
    assert sorted(path.name for path in Path("board").iterdir()) == ["leaderboard.json", "report.html"]


def full_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Every write of a file called `name` fails half-way, as on a full disk."""
    replace = os.replace

    def refuse(source: Any, target: Any) -> None:
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)


@pytest.mark.parametrize(
    "name",
    [
        "delta.safetensors",
        "leaderboard.json",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("result.json", "predictions.jsonl", "report.html")),
    ],
)
def test_a_full_disk_leaves_nothing_half_written(
    graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command = ("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", "--seeds", "1", "--out", "board")
    with monkeypatch.context() as patch:
        full_disk(patch, name)
        done = graft(*command)
    assert done.code == 2
    assert f"{name}: the disk is full" in done.err
    assert "free some space and run the same command again; finished runs are kept" in done.err
    assert list(Path().rglob(".*")) == []
    in_run = name in ("result.json", "predictions.jsonl", "delta.safetensors")
    assert len(list(Path("runs").iterdir())) == (0 if in_run else 1)
    assert not (Path("board") / name).exists()
    again = graft(*command)
    assert again.code == 0
    assert ("existed already" in again.out) is not in_run


@pytest.mark.parametrize(
    ("code", "message", "where"),
    [
        (errno.ENOSPC, "the disk is full", "fit"),
        (errno.EROFS, "this file system is read-only", "after"),
        pytest.param(errno.EROFS, "this file system is read-only", "fit", marks=pytest.mark.slow),
        pytest.param(errno.ENOSPC, "the disk is full", "after", marks=pytest.mark.slow),
    ],
)
def test_an_error_of_the_disk_anywhere_is_one_message(
    graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch, code: int, message: str, where: str
) -> None:
    """Also where a library writes and nobody expected it: it is no failure of a run."""

    def refuse(*rest: Any, **named: Any) -> None:
        raise OSError(code, os.strerror(code), "/tmp/of_a_library")

    target = (Majority, "fit") if where == "fit" else (leaderboard, "write_report")
    monkeypatch.setattr(*target, refuse)
    done = graft("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", "--seeds", "1", "--out", "board")
    assert done.code == 2
    assert done.err.count("graft:") == 1 and f"/tmp/of_a_library: {message}" in done.err
    assert len(list(Path("runs").iterdir())) == (where == "after")


@pytest.mark.parametrize("command", [("predict",), ("compare",), ("train", "--method", "majority"), ("show",)])
def test_a_text_where_a_path_belongs_is_one_message(command: tuple[str, ...], graft: Graft) -> None:
    name, *flags = command
    done = graft(name, "my card is lost " * 20, *flags)
    assert (done.code, done.err.count("graft:")) == (2, 1)
    assert "the name is too long for this file system" in done.err


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_path_in_a_folder_of_somebody_else_is_one_message(
    code: int, graft: Graft, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Path.stat

    def refuse(path: Path, **flags: Any) -> os.stat_result:
        if path.name == "theirs.csv":
            raise OSError(code, os.strerror(code), str(path))
        return look(path, **flags)

    monkeypatch.setattr(Path, "stat", refuse)
    done = graft("compare", "home/theirs.csv", "--methods", "majority")
    assert done.code == 2 and "graft: home/theirs.csv: cannot read or write here" in done.err
    assert "change its permissions" in done.err


@pytest.mark.parametrize("flag", ["--runs", "--out"])
def test_a_link_that_leads_nowhere_is_named(graft: Graft, written: Written, flag: str) -> None:
    Path("link").symlink_to("gone")
    for folder in ("link", "link/below"):
        done = graft("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", flag, folder)
        assert done.code == 2
        assert "graft: link: a broken link" in done.err and "correct the link" in done.err
    assert not Path("gone").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_an_output_that_is_full() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "graftwork", "--help"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.startswith("graft: standard output: the disk is full") and "Exception" not in done.stderr


def test_a_disk_that_fills_up_while_writing(graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    done = graft("train", written("t.csv", HEADER, ROWS), "--method", "majority")
    assert done.code == 2
    assert "the disk is full" in done.err
    assert list(Path("runs").iterdir()) == []


def test_answers_to_a_file_are_whole_or_not_there(
    graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = json.loads(graft("train", written("t.csv", HEADER, ROWS), "--method", "majority", "--json").out)["module"]
    questions = written("in.csv", ("text",), [("one",), ("two",)])
    with monkeypatch.context() as patch:
        full_disk(patch, "out.csv")
        done = graft("predict", module, "--file", questions, "--out", "out.csv")
    assert done.code == 2
    assert "out.csv: the disk is full" in done.err
    assert not Path("out.csv").exists()
    assert list(Path().glob(".*")) == []


def test_a_folder_without_permission_is_named(graft: Graft, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def refuse(self: Path, *rest: Any, **named: Any) -> None:
        if self.name == "board":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        make(self, *rest, **named)

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = graft("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", "--seeds", "1", "--out", "board")
    assert done.code == 2
    assert "board: cannot read or write here: Permission denied" in done.err
    assert "choose another folder, or change its permissions" in done.err
    assert list(Path("runs").iterdir()) == []


def test_a_torn_run_is_executed_again(graft: Graft, written: Written) -> None:
    """A folder without its `result.json` is no run: a killed process of an older version may have left one."""
    command = ("compare", written("t.csv", HEADER, ROWS), "--methods", "majority", "--seeds", "1")
    assert graft(*command).code == 0
    run = next(Path("runs").iterdir())
    (run / "result.json").unlink()
    again = graft(*command)
    assert again.code == 0
    assert "existed already" not in again.out
    assert (run / "result.json").is_file()
