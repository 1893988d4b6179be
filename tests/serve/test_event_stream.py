"""Answers as events: the text as it grows, what ends it, and who is told what."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from graftwork.serve.batching import Ticket, _told_by
from graftwork.serve.event_stream import TextListener, wants_events

TOKEN = "a-token-for-tests"
ROW = {"task": "mood", "text": "a warm film"}


def events(running: Any, body: Any) -> Iterator[tuple[str, Any]]:
    """Ask for events, and yield them as they come; the connection is closed with the iterator."""
    connection = http.client.HTTPConnection("127.0.0.1", running.client.port, timeout=10)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": "text/event-stream"}
    connection.request("POST", "/v1/predict", json.dumps(body), headers)
    response = connection.getresponse()
    try:
        assert response.status == 200 and response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["X-Accel-Buffering"] == "no" and response.headers["Cache-Control"] == "no-store"
        while line := response.readline().decode():
            name, data, blank = line, response.readline().decode(), response.readline()
            assert name.startswith("event: ") and data.startswith("data: ") and blank == b"\n"
            yield name[7:-1], json.loads(data[6:])
    finally:
        response.close()
        connection.close()


def test_a_text_comes_while_it_is_written_and_its_answer_at_the_end(running: Any) -> None:
    coming = events(running, ROW)
    assert next(coming) == ("text", {"text": "a"})
    assert not running.bank.spoken.is_set()
    running.bank.spoken.set()
    told = list(coming)
    assert [content["text"] for _, content in told[:-1]] == [" warm", " film"]
    answer = {"text": "a warm film", "log_probability": -1.5, "cut": False}
    assert told[-1] == ("answer", {"answers": {"mood": answer}, "cut": False})
    running.until(lambda: any("route" in line for line in running.lines()))
    (line,) = (line for line in running.lines() if "route" in line)
    assert line["status"] == 200 and line["rows"] == 1 and "queue_ms" in line and "why" not in line


def test_a_task_that_tells_nothing_answers_in_one_event(running: Any) -> None:
    running.bank.told = lambda place, example, tell: {"label": "good"}
    assert list(events(running, ROW)) == [("answer", {"answers": {"mood": {"label": "good"}}, "cut": False})]
    running.bank.told = lambda place, example, tell: {"text": "all at once"}
    assert [name for name, _ in events(running, ROW)] == ["text", "answer"]


def test_events_tell_one_answer(running: Any) -> None:
    for body in ({"rows": [ROW, ROW]}, {"task": ["mood", "topic"], "text": "a"}):
        status, answer, _ = running.client.ask("POST", "/v1/predict", body, Accept="text/event-stream")
        assert (status, answer["error"]["where"], answer["error"]["got"]) == (406, "Accept", "2 answers")


def test_what_is_refused_before_the_first_event_has_its_status(serving: Callable[..., Any]) -> None:
    running = serving(seconds=0.1)
    ask = lambda body: running.client.ask("POST", "/v1/predict", body, Accept="text/event-stream")  # noqa: E731
    assert ask({"task": "mod", "text": "a"})[0] == 404
    assert ask({"task": "mood", "text": "damaged"})[0] == 503
    running.bank.spoken.set()
    assert ask({"task": "mood", "text": "poison"})[0] == 500
    running.bank.gate.clear()
    assert ask(ROW)[0] == 503


def test_what_fails_later_is_an_event(serving: Callable[..., Any]) -> None:
    running = serving(seconds=0.1)
    *_, (name, content) = events(running, ROW)
    assert name == "error" and content["error"]["what"].startswith("no answer within 0.1 s")
    running.until(lambda: bool(running.bank.ended))  # nobody waits: it is not written to its end
    assert isinstance(running.bank.ended[0], CancelledError)
    running.bank.spoken.set()
    *_, (name, content) = events(running, {"task": "mood", "text": "soon broken"})
    assert name == "error" and content == {"error": {"what": "an internal error; details are in the server's log"}}
    assert [line["event"] for line in running.lines() if "traceback" in line] == ["internal error"]


def test_writing_ends_when_the_client_goes(running: Any) -> None:
    coming = events(running, ROW)
    next(coming)
    coming.close()  # type: ignore[attr-defined]
    running.until(lambda: bool(running.bank.ended))
    assert isinstance(running.bank.ended[0], CancelledError)
    running.until(lambda: any("the client went" in line.get("why", "") for line in running.lines()))
    running.bank.spoken.set()
    assert running.client.predict(ROW)[0] == 200


def test_a_batch_goes_on_for_those_who_wait() -> None:
    async def told() -> list[str]:
        heard: list[str] = []
        owners = [
            Ticket([], asyncio.get_running_loop().create_future(), 1, 0.0, listen) for listen in (None, heard.append)
        ]
        tell = _told_by(owners)
        assert tell is not None and _told_by(owners[:1]) is None
        owners[0].result.cancel()
        tell(0, "nobody's")
        tell(1, "a text")
        owners[1].result.cancel()
        with pytest.raises(CancelledError):
            tell(1, "a text more")
        return heard

    assert asyncio.run(told()) == ["a text"]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/event-stream", True),
        ("TEXT/event-stream; charset=utf-8, */*;q=0.1", True),
        ("application/json, text/event-stream", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_who_wants_events(accept: str, wanted: bool) -> None:
    assert wants_events(accept) is wanted


def test_half_a_character_waits_for_its_rest_and_a_text_that_goes_on_otherwise_is_left_out() -> None:
    async def heard(*texts: str) -> list[str]:
        listener = TextListener()
        for text in texts:
            listener.tell(text)
        asyncio.get_running_loop().call_soon(listener.end, None)
        return [piece async for piece in listener.pieces(time.monotonic() + 5)]

    assert asyncio.run(heard("caf\ufffd", "café", "café do", "café don't", "café don't go")) == [
        "caf",
        "é",
        " do",
        "n't",
        " go",
    ]
    assert asyncio.run(heard("do n", "don't", "do nothing")) == ["do n", "othing"]
