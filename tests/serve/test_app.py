"""What the server answers, by route."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pytest

from graftwork.module.inputs import TAKEN_BY
from graftwork.serve.http_bodies import BY_INPUTS
from graftwork.serve.request_parsing import _most_tokens

ROW = {"task": "mood", "text": "a warm film"}


def test_one_row_and_many(running: Any) -> None:
    assert running.client.predict(ROW) == (
        200,
        {"rows": [{"answers": {"mood": {"label": "mood: a warm film"}}, "cut": False}]},
    )
    status, answer = running.client.predict({"rows": [ROW, {"task": "topic", "text": "another"}]})
    assert status == 200
    assert [row["answers"] for row in answer["rows"]] == [
        {"mood": {"label": "mood: a warm film"}},
        {"topic": {"label": "topic: another"}},
    ]


@pytest.mark.parametrize(
    ("inputs", "tasks"),
    [
        ({"text": "a film"}, {"mood", "topic", "names"}),
        ({"words": ["a", "film"]}, {"names"}),
        ({"text_a": "a", "text_b": "b"}, {"same"}),
        ({"question": "who?", "context": "he did"}, {"asks"}),
        ({"text": "a", "choices": ["b", "c"]}, {"picks"}),
    ],
)
def test_every_task_that_takes_the_inputs(running: Any, inputs: dict[str, Any], tasks: set[str]) -> None:
    status, answer = running.client.predict({"task": "*"} | inputs)
    assert status == 200 and answer["rows"][0]["answers"].keys() == tasks


def test_several_tasks_each_once(running: Any) -> None:
    status, answer = running.client.predict({"task": ["topic", "mood", "topic"], "text": "a"})
    assert status == 200 and list(answer["rows"][0]["answers"]) == ["topic", "mood"]


def test_tasks_share_one_example(running: Any) -> None:
    running.client.predict({"task": ["topic", "mood"], "text": "a"})
    (first, second) = running.bank.batches[-1]
    assert first[1] is second[1]


def test_a_text_that_is_cut_is_told(running: Any) -> None:
    status, answer = running.client.predict({"rows": [ROW, {"task": "mood", "text": "long " * 100}]})
    assert status == 200 and [row["cut"] for row in answer["rows"]] == [False, True]


BAD = {
    "no JSON": (b"{", 400, "body"),
    "no UTF-8": (b'{"task": "\xff"}', 400, "body"),
    "UTF-16": (json.dumps(ROW).encode("utf-16"), 400, "body"),
    "NaN": (b'{"task": "mood", "text": NaN}', 400, "body"),
    "a huge number": (b'{"task": "mood", "text": 1' + b"0" * 5000 + b"}", 400, "body"),
    "infinity": (b'{"task": "mood", "text": 1e999}', 422, "body.text"),
    "deep": (b"[" * 100_000, 400, "body"),
    "half a pair": (b'{"task": "mood", "text": "\\ud800"}', 400, "body"),
    "a list": (b"[]", 422, "body"),
    "nothing": (b"", 400, "body"),
    "no rows": ({"rows": []}, 422, "rows"),
    "rows and more": ({"rows": [ROW], "task": "mood"}, 422, "body.task"),
    "a row of text": ({"rows": ["a"]}, 422, "rows[0]"),
    "no task": ({"text": "a"}, 422, "body.task"),
    "a number as task": ({"task": 1, "text": "a"}, 422, "body.task"),
    "no tasks": ({"task": [], "text": "a"}, 422, "body.task"),
    "unknown task": ({"task": "mod", "text": "a"}, 404, "body.task"),
    "other inputs": ({"task": "same", "text": "a"}, 422, "body"),
    "unknown input": ({"rows": [ROW, ROW | {"extra": 1}]}, 422, "rows[1]"),
    "a number as text": ({"task": "mood", "text": 7}, 422, "body.text"),
    "numbers as words": ({"task": "names", "words": ["a", 7]}, 422, "body.words[1]"),
    "an empty word": ({"rows": [{"task": "names", "words": ["a", ""]}]}, 422, "rows[0].words[1]"),
    "a long name": ({"rows": [ROW], "a" * 100: 1}, 422, "body." + "a" * 40),
    "empty": ({"task": "mood", "text": "  "}, 422, "body"),
    "one choice": ({"task": "picks", "text": "a", "choices": ["b"]}, 422, "body.choices"),
    "a file": ({"task": "flowers", "image": "/etc/passwd"}, 422, "body"),
    "a file as text": ({"task": "flowers", "text": "/etc/passwd"}, 422, "body"),
    "too many rows": ({"rows": [ROW] * 257}, 413, "rows"),
    "too many answers": ({"rows": [{"task": ["mood", "topic"], "text": "a"}] * 4}, 413, "rows"),
    "too many characters": ({"task": "mood", "text": "a" * 20_001}, 413, "body"),
    "too many words": ({"task": "names", "words": ["a"] * 5_001}, 413, "body"),
    "too many choices": ({"task": "picks", "text": "a", "choices": ["b"] * 101}, 413, "body"),
    "too many bytes": (b" " * 1_000_001, 413, "body"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_is_told(serving: Any, name: str) -> None:
    body, expected, where = BAD[name]
    running = serving(answers=7) if name == "too many answers" else serving()
    status, answer = running.client.predict(body)
    assert (status, answer["error"]["where"]) == (expected, where)
    assert answer["error"]["what"] and (status == 404 or answer["error"].keys() & {"got", "expected", "do"})
    assert running.client.predict(ROW)[0] == 200


def test_an_error_says_what_was_sent_and_what_is_taken(running: Any) -> None:
    told = running.client.predict({"rows": [ROW, {"task": "mood", "txt": "a"}]})[1]["error"]
    assert (told["where"], told["got"]) == ("rows[1]", "an object of 'task', 'txt'")
    assert told["expected"].startswith("text; text_a and text_b; ")
    told = running.client.predict({"task": "mood", "text": 7})[1]["error"]
    assert (told["got"], told["expected"]) == ("a number", "a valid string")
    assert "at line 1 column 2" in running.client.predict(b"{x")[1]["error"]["got"]


def test_the_inputs_of_a_body_are_those_that_tasks_take() -> None:
    assert BY_INPUTS.keys() == TAKEN_BY.keys()


def test_the_nearest_task_is_suggested(running: Any) -> None:
    assert "'mood'" in running.client.predict({"task": "mod", "text": "a"})[1]["error"]["do"]


def test_nothing_takes_such_inputs(serving: Any, bank: Any) -> None:
    bank.tasks = {"mood": bank.tasks["mood"]}
    status, answer = serving().client.predict({"task": "*", "words": ["a"]})
    assert status == 404 and "no task takes words" in answer["error"]["what"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/json; charset=utf-8"}, 200),
        ({"Content_Encoding": "gzip"}, 415),
    ],
)
def test_content_types(running: Any, headers: dict[str, str], expected: int) -> None:
    assert running.client.ask("POST", "/v1/predict", ROW, **headers)[0] == expected


def test_tasks_are_listed(running: Any) -> None:
    status, answer, _ = running.client.ask("GET", "/v1/tasks")
    assert status == 200
    assert answer["bank"] == {
        "backbone": {"id": "tiny_text", "revision": "0" * 64, "blocks": 2},
        "precision": "fp32",
        "tasks": 7,
    }
    mood = next(task for task in answer["tasks"] if task["name"] == "mood")
    assert mood["labels"] == ["bad", "good"] and mood["inputs"] == [["text"]] and mood["has_board"] is True
    assert {task["name"]: task["inputs"] for task in answer["tasks"]}["flowers"] == []


def test_a_task_is_told_with_its_card_and_board(running: Any) -> None:
    folder = running.bank.path / "tasks" / "mood" / "1"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# mood")
    (folder / "leaderboard.json").write_text('{"rows": [1]}')
    status, answer, _ = running.client.ask("GET", "/v1/tasks/mood")
    assert status == 200
    assert answer["card"] == "# mood" and answer["board"] == {"rows": [1]} and answer["recipe"] == {"epochs": 1}
    assert answer["has_board"] is True


@pytest.mark.parametrize("board", ['{"rows": [', "[" * 200_000])
def test_a_damaged_board_is_left_out(running: Any, board: str) -> None:
    folder = running.bank.path / "tasks" / "mood" / "1"
    folder.mkdir(parents=True)
    (folder / "leaderboard.json").write_text(board)
    status, answer, _ = running.client.ask("GET", "/v1/tasks/mood")
    assert status == 200 and answer["board"] is None and answer["board_in_words"] is None


@pytest.mark.parametrize(
    "text", ["!" * 40, "\U0001f9d1\u200d\U0001f680", "\ufdfa" * 20, "cafe\u0301", "\U00020000" * 8]
)
def test_no_tokenizer_makes_more_tokens_than_are_reckoned_with(text: str) -> None:
    by_bytes, by_letters = len(f" {text}".encode()), len(unicodedata.normalize("NFKC", f" {text}"))
    for given, texts, special in (({"text": text}, 1, 2), ({"text_a": text, "text_b": text}, 2, 4)):
        assert _most_tokens(given) >= texts * max(by_bytes, by_letters) + special


def test_a_task_without_files_is_told(running: Any) -> None:
    status, answer, _ = running.client.ask("GET", "/v1/tasks/topic")
    assert status == 200 and answer["card"] is None and answer["board"] is None


@pytest.mark.parametrize("name", ["none", "..", "%2e%2e", "..%2f..%2fbank.json", "a/b"])
def test_unknown_tasks_are_not_told(running: Any, name: str) -> None:
    assert running.client.ask("GET", f"/v1/tasks/{name}")[0] == 404


def test_life_and_readiness_need_no_token(running: Any) -> None:
    running.client.token = None
    assert running.client.ask("GET", "/livez")[:2] == (200, {"alive": True})
    status, answer, _ = running.client.ask("GET", "/readyz")
    assert status == 200 and answer == {"ready": True, "draining": False, "tasks": 7, "failed": []}


def test_metrics(running: Any) -> None:
    running.client.predict(ROW)
    running.client.predict(b"{")
    status, text, headers = running.client.ask("GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain")
    assert 'graftwork_requests_total{route="/v1/predict",status="200"} 1.0' in text
    assert 'graftwork_requests_total{route="/v1/predict",status="400"} 1.0' in text
    assert 'graftwork_task_rows_total{status="200",task="mood"} 1.0' in text
    assert "graftwork_batch_rows_count 1.0" in text and "graftwork_queue_tokens 0.0" in text
    assert "graftwork_tasks 7.0" in text and "process_resident_memory_bytes" in text


def test_rows_are_counted_by_task_and_status(running: Any) -> None:
    many = [{"task": ["mood", "topic"], "text": "a"}, {"task": "mood", "text": "b"}]
    assert running.client.predict({"rows": many})[0] == 200
    assert running.client.predict({"task": "mood", "text": "damaged"})[0] == 503
    assert running.client.predict({"task": "unheard", "text": "a"})[0] == 404
    text = running.client.ask("GET", "/metrics")[1]
    counted = re.findall(r'^graftwork_task_rows_total\{status="(\d+)",task="(\w+)"\} (.*)', text, flags=re.MULTILINE)
    assert sorted(counted) == [("200", "mood", "2.0"), ("200", "topic", "1.0"), ("503", "mood", "1.0")]


def test_the_page_is_a_fixed_list_of_files(running: Any) -> None:
    running.client.token = None
    status, _, headers = running.client.ask("GET", "/")
    assert status == 200 and headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in headers["content-security-policy"]
    for path in ("/page/index.html", "/../server.py", "/index.html.bak", "/__init__.py"):
        assert running.client.ask("GET", path)[0] == 404


def test_unsure_answers_are_withheld_where_the_request_says_so(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"good": 0.7, "bad": 0.3}
    answered = lambda rows, tell=None: [{"label": "good", "probabilities": shares} for _ in rows]  # noqa: E731
    monkeypatch.setattr(running.bank, "answers", answered)
    for least, label in ((0.7, "good"), (0.71, None)):
        status, answer = running.client.predict({"rows": [ROW], "abstain_below": least})
        kept = {"label": label, "probabilities": shares, "best_guess": "good", "probability": 0.7}
        assert status == 200 and answer["rows"][0]["answers"] == {"mood": kept}
    assert "best_guess" not in running.client.predict({"rows": [ROW]})[1]["rows"][0]["answers"]["mood"]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"abstain_below": 95}, "does not match the schema"),
        ({"abstain_below": 0.5, "target_precision": 0.9}, "two ways"),
        ({"target_precision": 0.9}, "no validation figures"),
        ({"abstain_below": 0.5}, "have no probability"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(running: Any, asked: dict[str, float], what: str) -> None:
    status, answer = running.client.predict({"rows": [ROW]} | asked)
    assert status == 422 and what in answer["error"]["what"]
