"""The schema, the page made from it, and the commands of docs/how-to/serve.md do what the server does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from graftwork.cli.serve import command
from graftwork.serve.feedback_file import FeedbackFile
from graftwork.serve.openapi import ERRORS, SCHEMAS, openapi
from graftwork.serve.pages import page_routes

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)


def test_every_route_is_in_the_schema_and_no_other(running: Any) -> None:
    files = {route.path for route in page_routes()}
    assert running.server.routes == openapi()["paths"].keys() | {"/docs", "/openapi.json"} | files


@pytest.mark.parametrize("path", [path for path in openapi()["paths"] if path != "/v1/attention"])
def test_every_path_takes_its_example(running: Any, path: str, tmp_path: Path) -> None:
    running.server.service.feedback = FeedbackFile.open(tmp_path / "feedback.jsonl", 10_000)
    for method, told in openapi()["paths"][path].items():
        if method != "parameters":
            body = told["requestBody"]["content"]["application/json"]["example"] if "requestBody" in told else None
            assert running.client.ask(method.upper(), path.replace("{name}", "mood"), body)[0] == 200


def test_every_operation_has_a_name_of_its_own() -> None:
    told = [told for methods in openapi()["paths"].values() for verb, told in methods.items() if verb != "parameters"]
    assert sorted(each["operationId"] for each in told) == [
        "alive",
        "attention",
        "feedback",
        "metrics",
        "predict",
        "ready",
        "task",
        "tasks",
    ]


def test_every_answer_of_a_path_is_in_the_schema(running: Any) -> None:
    paths = openapi()["paths"]
    running.server.service.draining = True
    assert str(running.client.ask("GET", "/readyz")[0]) in paths["/readyz"]["get"]["responses"].keys() - {"200"}
    assert "503" in paths["/livez"]["get"]["responses"]
    for body in ({"task": "mood", "text": "damaged"}, {"task": "mood", "text": "poison"}, b"{"):
        assert str(running.client.predict(body)[0]) in paths["/v1/predict"]["post"]["responses"].keys() - {"200"}


def test_the_schema_is_served_and_its_references_hold(running: Any) -> None:
    status, answer, _ = running.client.ask("GET", "/openapi.json")
    assert status == 200 and answer == json.loads(json.dumps(openapi()))
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(answer)))
    assert named <= set(SCHEMAS) and answer["openapi"].startswith("3.")


def test_the_page_needs_nothing_from_elsewhere(running: Any) -> None:
    status, html, headers = running.client.ask("GET", "/docs")
    assert status == 200 and headers["content-type"].startswith("text/html")
    assert "POST /v1/predict" in html and all(f"<b>{code}</b>" in html for code in ERRORS)
    assert "<script" not in html and "://" not in html


def test_curl_commands_are_answered(running: Any, tmp_path: Path) -> None:
    running.server.service.feedback = FeedbackFile.open(tmp_path / "feedback.jsonl", 10_000)
    commands = re.findall(r"^curl .*?(?<!\\)$", "\n".join(blocks("sh")), flags=re.MULTILINE | re.DOTALL)
    assert len(commands) >= 3
    running.bank.spoken.set()
    for line in commands:
        words = [word for word in shlex.split(line.replace("\\\n", " ")) if word != "curl"]
        url = next(word for word in words if word.startswith("http"))
        data = words[words.index("-d") + 1] if "-d" in words else None
        path = "/" + url.split("/", 3)[3]
        body = data and data.replace("english", "mood").encode()  # the bank of the tests has no task that writes
        accept = "text/event-stream" if "-N" in words else "*/*"
        assert f"Accept: {accept}" in words or accept == "*/*"
        status, answer, _ = running.client.ask("GET" if body is None else "POST", path, body, Accept=accept)
        assert status == 200, (line, answer)


def test_the_python_client_runs(running: Any, tmp_path: Path) -> None:
    (client,) = blocks("python")
    (tmp_path / "token").write_text("a-token-for-tests\n")
    client = client.replace("http://127.0.0.1:8080", f"http://127.0.0.1:{running.server.port}")
    client = client.replace("/etc/graftwork/token", str(tmp_path / "token"))
    said: list[Any] = []
    exec(compile(client, "docs/how-to/serve.md", "exec"), {"print": said.append})
    assert said and "mood" in str(said)


def test_commands_and_the_systemd_unit_name_real_flags() -> None:
    (unit,) = blocks("ini")
    lines = re.findall(r"graft serve (.*)", unit + "\n".join(blocks("sh")))
    assert len(lines) >= 2
    for line in lines:
        command.make_context("serve", shlex.split(line, comments=True))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_say_what_they_hold(name: str) -> None:
    assert SCHEMAS[name].keys() & {"type", "oneOf"} and SCHEMAS[name]["description"]
