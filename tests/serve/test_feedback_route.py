"""What `POST /v1/feedback` keeps and refuses, and that the rows are read for training as they are."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from graftwork.cli.serve import command
from graftwork.core.task import Task
from graftwork.data.load import load
from graftwork.errors import ConfigError, StorageError
from graftwork.serve.feedback_file import FeedbackFile

GOOD = {"task": "mood", "text": "my card is lost", "label": "bad", "predicted": "good"}


@pytest.fixture
def keeping(running: Any, tmp_path: Path) -> Any:
    running.server.service.feedback = FeedbackFile.open(tmp_path / "feedback.jsonl", 10_000)
    return running


def kept(running: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in running.server.service.feedback.path.read_text().splitlines()]


def test_a_label_is_kept_as_a_line(keeping: Any) -> None:
    status, answer, _ = keeping.client.ask("POST", "/v1/feedback", GOOD)
    assert status == 200 and kept(keeping) == [answer["kept"]]
    assert list(answer["kept"]) == ["task", "version", "text", "label", "predicted", "time"]
    assert {name: answer["kept"][name] for name in GOOD} == GOOD
    assert keeping.server.service.feedback.path.stat().st_mode & 0o777 == 0o600


def test_a_pair_is_kept_by_its_columns(keeping: Any) -> None:
    pair = {"task": "same", "text_a": "a\n b", "text_b": 'c "d"', "label": "good"}
    assert keeping.client.ask("POST", "/v1/feedback", pair)[0] == 200
    (row,) = kept(keeping)
    assert row["predicted"] is None and {name: row[name] for name in pair} == pair


@pytest.mark.parametrize(
    ("changed", "status", "where", "expected"),
    [
        ({"label": "worse"}, 422, "body.label", "one of bad, good"),
        ({"label": " "}, 422, "body.label", "a name"),
        ({"label": 1}, 422, "body.label", "one of bad, good"),
        ({"label": None}, 422, "body.label.str", "a valid string"),
        ({"task": "none"}, 404, "task", ""),
        ({"text": " \n"}, 422, "body", ""),
        ({"text_a": "x"}, 422, "body", "text; text_a and text_b; words; context and question; choices and text"),
        ({"text": "x" * 20_001}, 413, "body", "at most 20,000"),
        ({"task": "same"}, 422, "body", "text_a and text_b"),
        ({"more": 1}, 422, "body.more", "Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_refused(keeping: Any, changed: Any, status: int, where: str, expected: str) -> None:
    found, answer, _ = keeping.client.ask("POST", "/v1/feedback", GOOD | changed)
    error = answer["error"]
    assert (found, error.get("where", ""), error.get("expected", "")) == (status, where, expected), error
    assert kept(keeping) == []


def test_the_token_is_asked_for(keeping: Any) -> None:
    keeping.client.token = "another"
    assert keeping.client.ask("POST", "/v1/feedback", GOOD)[0] == 401


def test_a_server_without_a_file_says_how_to_have_one(running: Any) -> None:
    status, answer, _ = running.client.ask("POST", "/v1/feedback", GOOD)
    assert status == 404 and "--feedback FILE" in answer["error"]["do"]
    assert not any(task["feedback"] for task in running.client.ask("GET", "/v1/tasks")[1]["tasks"])


def test_tasks_say_whether_their_labels_are_kept(keeping: Any) -> None:
    keeping.bank.tasks["names"].description["task"]["kind"] = "tagging"
    told = {task["name"]: task["feedback"] for task in keeping.client.ask("GET", "/v1/tasks")[1]["tasks"]}
    assert told["mood"] and not told["names"]
    assert keeping.client.ask("GET", "/v1/tasks/mood")[1]["feedback"] is True
    status, answer, _ = keeping.client.ask("POST", "/v1/feedback", {"task": "names", "text": "Ada", "label": "x"})
    assert (status, answer["error"]["got"]) == (422, "tagging")


def test_a_full_file_takes_no_more(keeping: Any) -> None:
    path = keeping.server.service.feedback.path
    path.write_text("x" * 9_990 + "\n")
    assert keeping.client.ask("POST", "/v1/feedback", GOOD)[0] == 507
    assert path.stat().st_size == 9_991


def test_a_file_that_can_not_be_written_any_more(keeping: Any) -> None:
    path = keeping.server.service.feedback.path
    path.unlink()
    path.mkdir()
    status, answer, headers = keeping.client.ask("POST", "/v1/feedback", GOOD)
    assert status == 503 and headers["retry-after"] == "60" and str(path.parent) not in json.dumps(answer)


def test_a_line_that_another_program_left_torn_spoils_no_other(keeping: Any) -> None:
    path = keeping.server.service.feedback.path
    path.write_text('{"task": "mo')
    keeping.client.ask("POST", "/v1/feedback", GOOD)
    torn, line = path.read_text().splitlines()
    assert torn == '{"task": "mo' and json.loads(line)["label"] == "bad"


def test_many_writers_tear_no_line(tmp_path: Path) -> None:
    files = [FeedbackFile.open(tmp_path / "f.jsonl", 10_000_000) for _ in range(4)]  # as of four processes
    rows = [{"text": f"{at} " + "x" * 5_000} for at in range(80)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: files[at % 4].add(rows[at]), range(80)))
    found = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert sorted(found, key=lambda row: int(row["text"].split()[0])) == rows


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FeedbackFile.open(tmp_path / "f.jsonl", 10_000)
    file.add({"text": "one"})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError):
        file.add({"text": "two"})
    assert (tmp_path / "f.jsonl").read_text() == '{"text":"one"}\n'


def test_a_file_is_needed_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        FeedbackFile.open(tmp_path, 10)
    with pytest.raises(StorageError):
        FeedbackFile.open(tmp_path / "none" / "f.jsonl", 10)
    with pytest.raises(ConfigError, match="plain file"):
        FeedbackFile.open(Path("/dev/null"), 10)


def test_the_command_ends_where_the_file_can_not_be_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "shop.bank"), "--feedback", str(tmp_path / "none" / "f.jsonl")])
    assert isinstance(done.exception, StorageError) and "none" in str(done.exception)


@pytest.mark.parametrize(
    ("kind", "labels"), [("classification", ["bad", "good"]), ("multilabel", [["bad"], ["bad", "good"]])]
)
def test_kept_rows_are_read_for_training(keeping: Any, kind: str, labels: list[Any]) -> None:
    keeping.bank.tasks["mood"].description["task"]["kind"] = kind
    for at in range(40):
        row = GOOD | {"text": f"text {at}", "label": labels[at % 2]}
        assert keeping.client.ask("POST", "/v1/feedback", row)[0] == 200
    data = load(Task("mood", keeping.server.service.feedback.path, kind=kind))
    assert (
        sorted(data.task.labels) == ["bad", "good"] and sum(len(split.examples) for split in data.splits.values()) == 40
    )
