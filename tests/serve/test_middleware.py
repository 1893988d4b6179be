"""The token, the log, and errors that tell nothing of the inside."""

from __future__ import annotations

import base64
from typing import Any

import pytest

ROW = {"task": "mood", "text": "a warm film"}


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks/mood", "/v1/none", "/metrics", "/docs", "/openapi.json"])
def test_a_token_is_needed(running: Any, path: str) -> None:
    running.client.token = None
    status, answer, headers = running.client.ask("GET", path)
    assert status == 401 and answer["error"]["what"] == "a token is needed"
    assert headers["www-authenticate"].startswith("Bearer" if path.startswith("/v1/") else "Basic")
    running.client.token = "another"
    assert running.client.ask("GET", path)[1]["error"]["what"] == "the token is wrong"


def test_a_browser_may_show_the_token_as_a_password_where_a_person_looks(running: Any) -> None:
    basic = "Basic " + base64.b64encode(b"anyone:a-token-for-tests").decode()
    assert running.client.ask("GET", "/docs", Authorization=basic)[0] == 200
    assert running.client.ask("GET", "/v1/tasks", Authorization=basic)[0] == 401
    assert running.client.ask("GET", "/docs", Authorization="Basic !")[0] == 401


def test_another_method_and_another_path(running: Any) -> None:
    status, answer, headers = running.client.ask("GET", "/v1/predict")
    assert status == 405 and headers["allow"] == "POST" and answer["error"]["got"] == "GET"
    status, answer, _ = running.client.ask("POST", "/nowhere", ROW)
    assert status == 404 and answer["error"]["what"] == "no such path"


def test_an_internal_error_is_logged_and_not_told(running: Any) -> None:
    status, answer = running.client.predict({"task": "mood", "text": "poison"})
    assert status == 500 and answer == {"error": {"what": "an internal error; the server's log has it"}}
    logged = next(line for line in running.lines() if line.get("event") == "internal error")
    assert "ZeroDivisionError" in logged["traceback"]


def test_a_line_a_request_without_texts(running: Any) -> None:
    running.client.predict(ROW)
    running.client.ask("GET", "/some/path?token=secret")
    running.until(lambda: sum("route" in line for line in running.lines()) == 2)
    first, second = [line for line in running.lines() if "route" in line]
    assert first.keys() == {"time", "method", "route", "status", "ms", "rows", "queue_ms"}
    assert (first["route"], first["status"], first["rows"]) == ("/v1/predict", 200, 1)
    assert (
        second["route"] == "other" and "secret" not in running.log.getvalue() and "warm" not in running.log.getvalue()
    )


def test_texts_are_logged_when_asked_for(serving: Any) -> None:
    running = serving(log_texts=True)
    running.client.predict(ROW)
    running.until(lambda: any("inputs" in line for line in running.lines()))
    assert next(line for line in running.lines() if "inputs" in line)["inputs"] == [{"text": "a warm film"}]


def test_headers_that_keep_answers_private(running: Any) -> None:
    _, _, headers = running.client.ask("GET", "/v1/tasks")
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
