"""Several tasks from Python: each with its own settings, a failing one among them, and found again."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import graftwork as gw
from graftwork.compare.compare_tasks import compare_each
from graftwork.errors import ConfigError, GraftworkError, StorageError, UnknownName

QUICK: dict[str, Any] = {"backbone": "tiny_text", "epochs": 1, "exhaustive": True, "jobs": 1, "cache_size": "0"}


def write(path: Path, word: str, rows: int = 30) -> Path:
    """Rows that say what they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        listed = [(f"{word} is {'good' if i % 3 else 'bad'} number {i}", "yes" if i % 3 else "no") for i in range(rows)]
        csv.writer(stream).writerows([("text", "label"), *listed])
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two data files, and a task file that says how it wants to be compared."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.csv", "tea")
    (tmp_path / "tea.toml").write_text(
        'data = "rows.csv"\nmethods = ["majority", "tfidf_svm"]\nseeds = 1\nout = "own"\n'
    )
    return [tmp_path / "tea.toml", write(tmp_path / "milk.csv", "milk"), write(tmp_path / "salt.csv", "salt")]


@pytest.mark.slow
def test_each_task_by_its_own_settings_then_all_together(files: list[Path]) -> None:
    chosen: dict[str, Any] = {**QUICK, "methods": ["majority", "tfidf_svm"], "seeds": 2}
    over = gw.compare_tasks(files, against="tfidf_svm", **chosen)
    assert list(over.boards) == over.content["counted"] == ["tea", "milk", "salt"]
    assert {row["n_seeds"] for row in over.boards["tea"].rows} == {2}, "what is given here goes before the task file"
    assert over.boards["tea"].folder == Path("own") and over.boards["milk"].folder == Path("boards/tasks/milk")
    assert [row["method"] for row in over.rows] == ["tfidf_svm", "majority"]
    assert over.rows[0]["geometric_mean"] == pytest.approx(1.0)
    written = json.loads(Path("boards/tasks/tasks.json").read_text(encoding="utf-8"))
    assert written == over.content and written["name"] == "tasks"
    page = Path("boards/tasks/tasks.html").read_text(encoding="utf-8")
    assert 'href="milk/report.html"' in page and 'href="../../own/report.html"' in page
    again = gw.compare_tasks(files, out="again", **chosen)
    assert sum(board.executed for board in again.boards.values()) == 0
    assert [row["scores"] for row in again.rows] == [row["scores"] for row in over.rows]


def test_a_task_file_is_honoured(files: list[Path]) -> None:
    Path("milk.toml").write_text('data = "milk.csv"\nmethods = ["majority"]\nseeds = 2')
    over = gw.compare_tasks([files[0], "milk.toml"], **QUICK)
    found = {name: {row["method"]: row["n_seeds"] for row in board.rows} for name, board in over.boards.items()}
    assert found == {"tea": {"majority": 1, "tfidf_svm": 1}, "milk": {"majority": 2}}


def test_a_task_may_be_given_ready_made(files: list[Path]) -> None:
    over = gw.compare_tasks([replace(gw.Task.from_file(files[1]), name="dairy")], methods="majority", **QUICK)
    assert over.content["counted"] == ["dairy"] and over.boards["dairy"].rows[0]["n_seeds"] == 5


def test_a_task_that_fails_is_a_row_and_the_others_go_on(files: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("text,label\na text\n")
    told: list[tuple[float, str]] = []
    over = gw.compare_tasks([bad, files[1]], methods="majority", seeds=1, progress=lambda *at: told.append(at), **QUICK)
    states = {task["name"]: (task["status"], task["board"] is None) for task in over.content["tasks"]}
    assert states == {"milk": ("ok", False), "bad": ("failed", True)}
    assert "bad.csv:2" in next(task["error"] for task in over.content["tasks"] if task["name"] == "bad")
    assert any("1 of 2 tasks" in note for note in over.content["notes"])
    assert all(1 / 2 <= done <= 1 and text.startswith("milk: ") for done, text in told)
    assert "bad.csv" in Path("boards/tasks/tasks.html").read_text(encoding="utf-8")


def test_settings_that_make_no_sense_are_errors_before_any_run(files: list[Path]) -> None:
    with pytest.raises(UnknownName, match="did you mean 'majority'"):
        gw.compare_tasks(files, methods=["majority", "tfidf_svm"], against="majorty")
    with pytest.raises(ConfigError, match="seeds must be at least 1"):
        gw.compare_tasks(files, seeds=0)
    settings: dict[str, tuple[Any, str]] = {
        "vary": (["foo"], "unknown source of variation 'foo'"),
        "epochs": (0, "epochs must be above 0"),
        "jobs": (0, "jobs must be between 1"),
        "precision": ("fp8", "unknown precision"),
        "device": ("tpu", "unknown device"),
        "cache_size": ("much", "not a size"),
        "max_memory": ("some", "not a size"),
        "prices": ("prices.toml", "no such file"),
    }
    for name, (value, said) in settings.items():
        with pytest.raises(GraftworkError, match=said):
            compare_each([(gw.Task.from_file(path), {"seeds": 1, name: value}) for path in files])
    with pytest.raises(ConfigError, match="no task is named"):
        gw.compare_tasks([])
    with pytest.raises(ConfigError, match="same name"):
        gw.compare_tasks([files[1], files[1]])
    two = [gw.Task.from_file(path) for path in files[1:]]
    places = zip(two, ("a/b", "a/c/../b"), strict=True)
    with pytest.raises(ConfigError, match="overwrite each other's out"):
        compare_each([(task, {"seeds": 1, "out": place}) for task, place in places])
    with pytest.raises(ConfigError, match="overwrite each other's rejects"):
        compare_each([(replace(task, rejects="bad.jsonl"), {"seeds": 1}) for task in two])
    with pytest.raises(StorageError, match=r"missing.csv: no such file or folder"):
        gw.compare_tasks([files[1], "missing.csv"])
    with pytest.raises(ConfigError, match="none can start from random weights"):
        gw.compare_tasks(files, methods=["majority"], no_transfer=True)
    assert not Path("runs").exists() and not Path("boards").exists()


def test_tasks_that_share_a_name_are_called_by_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [write(tmp_path / name / "drinks.csv", name) for name in ("tea", "milk")]
    over = gw.compare_tasks(tasks, methods="majority", seeds=1, **QUICK)
    assert over.content["counted"] == ["tea_drinks", "milk_drinks"]
