"""`graft stream` end to end: its table, its file, its exit codes, and the contrast."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank import stream_training
from graftwork.module.task_module import TaskModule

Graft = Callable[..., Any]
Written = Callable[..., Path]

QUICK = ("--backbone", "tiny_text", "--epochs", "1", "--device", "cpu")
HEADER = ("text", "label")


@pytest.fixture
def tasks(written: Written) -> list[str]:
    """Two task files in the folder of this test."""
    for name, label in (("mood", "good,bad"), ("place", "here,there")):
        labels = label.split(",")
        written(f"{name}.csv", HEADER, [(f"{labels[i % 2]} {name} number {i}", labels[i % 2]) for i in range(40)])
        Path(f"{name}.toml").write_text(f'data = "{name}.csv"\n', encoding="utf-8")
    return ["mood.toml", "place.toml"]


def test_the_table_and_the_bank(graft: Graft, tasks: list[str]) -> None:
    done = graft("stream", *tasks, "--bank", "b.bank", "--method", "linear_probe", *QUICK)
    assert done.code == 0, done.err
    header, first, second, *_ = done.out.splitlines()
    assert "score [95 % over examples]" in header and "self-tests of the others" in header
    assert first.split()[:3] == ["1", "mood", "accuracy"] and first.endswith("none yet")
    assert second.split()[:3] == ["2", "place", "accuracy"] and second.endswith("all 1 bit-identical")
    assert "Bank: b.bank, 2 tasks of this stream" in done.out and "Written: " in done.out
    answer = TaskModule.load("b.bank/tasks/place/1").predict(["it is here number 3"])[0]
    assert answer["label"] in ("here", "there") and 'graft predict b.bank place "a text"\n' in done.out


def test_json_is_the_file(graft: Graft, tasks: list[str]) -> None:
    done = graft("stream", *tasks, "--bank", "b.bank", "--method", "majority", "--out", "s", "--json", *QUICK)
    assert done.code == 0, done.err
    found, stored = json.loads(done.out), json.loads(Path("s/stream.json").read_text(encoding="utf-8"))
    for content in (found, stored):
        content.pop("environment")  # holds the time
    assert found == stored
    assert [row["task"] for row in found["tasks"]] == ["mood", "place"]


def test_the_same_command_says_what_was_there(graft: Graft, tasks: list[str]) -> None:
    command = ("stream", *tasks, "--bank", "b.bank", "--method", "majority", *QUICK)
    assert "there already" not in graft(*command).out
    assert graft(*command).out.count("(reused)") == 2


def test_a_task_that_was_removed_is_no_part_of_the_bank(graft: Graft, tasks: list[str]) -> None:
    command = ("stream", *tasks, "--bank", "b.bank", "--method", "majority", *QUICK)
    assert "Bank: b.bank, 2 tasks of this stream" in graft(*command).out
    assert graft("bank", "remove", "b.bank", "place").code == 0
    done = graft("stream", tasks[0], *command[3:])
    assert done.code == 0, done.err
    assert "Bank: b.bank, 1 task of this stream" in done.out and "graft predict b.bank mood " in done.out
    assert graft("bank", "remove", "b.bank", "mood").code == 0
    Path("mood.csv").write_text("text,label\na,b\n", encoding="utf-8")
    done = graft("stream", tasks[0], *command[3:])
    assert done.code == 1 and "Bank: b.bank, 0 tasks of this stream" in done.out and "Use it" not in done.out


def test_a_task_that_fails_is_told_at_the_end(graft: Graft, tasks: list[str]) -> None:
    Path("mood.csv").write_text("text,label\na,b\n", encoding="utf-8")
    command = ("stream", *tasks, "--bank", "b.bank", "--method", "majority", *QUICK)
    done = graft(*command)
    assert done.code == 1 and done.err == ""
    assert "1  mood" in done.out and "failed: mood.csv" in done.out
    told = done.out[done.out.index("Failed: 1") :]
    assert "mood.csv" in told and "do:" in told
    assert Path("b.bank/tasks/place").is_dir()
    strict = graft(*command, "--strict")
    assert strict.code == 2 and "mood.csv" in strict.err


def test_flags_of_a_task_are_told_to_be_lines_of_its_file(graft: Graft, written: Written) -> None:
    odd = written("odd.csv", ("message", "label"), [(f"number {i}", "ab"[i % 2]) for i in range(40)])
    told = graft("stream", odd, "--bank", "b.bank", "--method", "majority", *QUICK).out
    assert "--text COLUMN" in told and "docs/reference/data-files.md#task-files)" in told
    plain = odd.rename("two words.csv")
    done = graft("stream", plain, "--bank", "b.bank", "--method", "majority", *QUICK)
    assert done.code == 2 and "give it another name" in done.err and "--task" not in done.err
    wrong = graft("stream", "none.csv", "--bank", "b.bank", "--method", "majority", *QUICK)
    assert "no such file" in wrong.out and "task file" not in wrong.out


def test_a_task_that_changed_stops_it_with_its_name(
    graft: Graft, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("stream", *tasks, "--bank", "b.bank", "--method", "majority", *QUICK)
    assert graft(*command).code == 0
    Path("b.bank/tasks/mood/1/README.md").write_text("changed\n", encoding="utf-8")
    monkeypatch.setattr(stream_training, "train_in", None)  # nothing is trained any more
    done = graft(*command)
    assert done.code == 2
    assert "b.bank/tasks/mood/1: a file of this task has changed since it was added" in done.err
    assert "graft bank rollback" in done.err


def test_ctrl_c_says_what_is_kept(graft: Graft, tasks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(stream_training, "train_in", interrupt)
    done = graft("stream", *tasks, "--bank", "b.bank", "--method", "majority", *QUICK)
    assert done.code == 130 and "the same command resumes with the others" in done.err


def test_the_contrast_tells_what_is_forgotten(graft: Graft, tasks: list[str]) -> None:
    done = graft("stream", *tasks, "--bank", "b.bank", "--method", "full-sequential", *QUICK)
    assert done.code == 0, done.err
    header, first, second, *rest = done.out.splitlines()
    assert "backward transfer" in header and "forgetting" in header
    assert first.split()[-2:] == ["–", "–"]
    row = json.loads(Path("full-sequential/stream.json").read_text(encoding="utf-8"))["tasks"][1]
    assert second.split()[-1] == f"{row['figures']['forgetting']:+.3f}"
    assert "No task was added to a bank" in " ".join(rest) and not Path("b.bank").exists()


def test_no_bank(graft: Graft, tasks: list[str]) -> None:
    done = graft("stream", *tasks, *QUICK)
    assert done.code == 2 and "--bank DIR" in done.err
