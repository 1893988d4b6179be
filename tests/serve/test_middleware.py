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
    assert status == 500 and answer == {"error": {"what": "an internal error; details are in the server's log"}}
    logged = next(line for line in running.lines() if line.get("event") == "internal error")
    assert "ZeroDivisionError" in logged["traceback"] and len(logged["request_id"]) == 32


def test_a_line_a_request_without_texts(running: Any) -> None:
    running.client.predict(ROW)
    running.client.ask("GET", "/some/path?token=secret")
    running.until(lambda: sum("route" in line for line in running.lines()) == 2)
    first, second = [line for line in running.lines() if "route" in line]
    assert first.keys() == {"time", "method", "route", "status", "ms", "client", "request_id", "rows", "queue_ms"}
    assert (first["route"], first["status"], first["rows"]) == ("/v1/predict", 200, 1)
    assert (
        second["route"] == "other" and "secret" not in running.log.getvalue() and "warm" not in running.log.getvalue()
    )


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ({"X_Request_ID": "a1/b.c:9"}, {"request_id": "a1/b.c:9"}),
        ({"X_Request_ID": "with space"}, {}),
        ({"X_Request_ID": "\xe9"}, {}),
        ({"X_Request_ID": "a" * 129}, {}),
        ({"traceparent": TRACE}, {"traceparent": TRACE}),
        ({"traceparent": TRACE.replace("00-", "ff-")}, {}),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, {}),
        ({"X_Forwarded_For": "192.0.2.7"}, {"client": "192.0.2.7"}),
        ({"X_Forwarded_For": "192.0.2.7, 127.0.0.1"}, {"client": "192.0.2.7"}),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/livez"), ("GET", "/none"), ("POST", "/v1/predict")])
def test_a_line_says_where_a_request_comes_from(
    running: Any, method: str, path: str, sent: dict[str, str], taken: dict[str, str]
) -> None:
    _, _, headers = running.client.ask(method, path, **sent)
    running.until(lambda: any("route" in line for line in running.lines()))
    (line,) = [line for line in running.lines() if "route" in line]
    assert headers["x-request-id"] == line["request_id"]
    expected = {"client": "127.0.0.1", "request_id": line["request_id"]} | taken
    assert {name: line[name] for name in ("client", "request_id", "traceparent") if name in line} == expected
    assert "request_id" in taken or len(line["request_id"]) == 32


def test_texts_are_logged_when_asked_for(serving: Any) -> None:
    running = serving(log_texts=True)
    running.client.predict(ROW)
    running.until(lambda: any("inputs" in line for line in running.lines()))
    assert next(line for line in running.lines() if "inputs" in line)["inputs"] == [{"text": "a warm film"}]


def test_headers_that_keep_answers_private(running: Any) -> None:
    _, _, headers = running.client.ask("GET", "/v1/tasks")
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
