"""A server's life: overload, clients that go, a bank that changes under it, and its end."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from graftwork.errors import ConfigError, StorageError
from graftwork.serve.request_log import Records
from graftwork.serve.server import SWITCH_SECONDS, Server, bind, is_loopback, keep_few_kernels, quick_turns

ROW = {"task": "mood", "text": "a warm film"}


def ask_in_thread(running: Any, body: Any = ROW) -> Future[Any]:
    return ThreadPoolExecutor(max_workers=1).submit(running.client.predict, body)


def occupied(running: Any, waiting: int = 0) -> list[Future[Any]]:
    """The thread busy with one request, and so many behind it."""
    running.bank.gate.clear()
    batcher = running.server.service.batcher
    asked = [ask_in_thread(running)]
    running.until(lambda: running.bank.entered)
    for number in range(1, waiting + 1):
        asked.append(ask_in_thread(running))
        running.until(lambda number=number: batcher.waiting[0] == number)
    return asked


def test_a_full_queue_answers_429_at_once_and_the_rest_is_answered(serving: Any) -> None:
    running = serving(queue_tokens=10)  # a row is 5 or 6
    accepted = occupied(running, waiting=2)
    began = time.monotonic()
    status, answer, headers = running.client.ask("POST", "/v1/predict", ROW, X_Request_ID="mine")
    assert time.monotonic() - began < 5 and headers["x-request-id"] == "mine"
    assert status == 429 and headers["retry-after"] == "1" and answer["error"]["what"] == "the queue is full"
    running.bank.gate.set()
    assert [asked.result()[0] for asked in accepted] == [200, 200, 200]
    assert running.client.predict(ROW)[0] == 200


def test_what_is_not_answered_in_time_is_told_and_not_computed(serving: Any) -> None:
    running = serving(seconds=0.1)
    occupied(running)
    status, answer, headers = running.client.ask("POST", "/v1/predict", {"task": "mood", "text": "too late"})
    assert status == 503 and "within 0.1 s" in answer["error"]["what"] and headers["retry-after"] == "1"
    assert running.server.service.batcher.waiting == (0, 0)
    running.bank.gate.set()
    running.until(lambda: len(running.bank.batches) == 1)
    assert "too late" not in str(running.bank.batches)


def test_a_client_that_goes_is_dropped_from_the_queue(running: Any) -> None:
    occupied(running)
    connection = http.client.HTTPConnection("127.0.0.1", running.server.port)
    headers = {"Authorization": f"Bearer {running.client.token}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/predict", json.dumps(ROW | {"text": "gone"}), headers)
    batcher = running.server.service.batcher
    running.until(lambda: batcher.waiting[0] == 1)
    connection.close()
    running.until(lambda: batcher.waiting == (0, 0))
    running.bank.gate.set()
    running.until(lambda: any(line.get("status") == 499 for line in running.lines()))
    assert "gone" not in str(running.bank.batches)


def test_batch_mates_of_a_failing_row_are_answered(running: Any) -> None:
    first = occupied(running)
    texts = ("a", "poison", "b")
    batcher = running.server.service.batcher
    for number, text in enumerate(texts, 1):
        first.append(ask_in_thread(running, {"task": "mood", "text": text}))
        running.until(lambda number=number: batcher.waiting[0] == number)
    running.bank.gate.set()
    assert [asked.result()[0] for asked in first] == [200, 200, 500, 200]


def test_the_server_drains(serving: Any) -> None:
    running = serving()
    accepted = occupied(running, waiting=1)
    ending = threading.Thread(target=running.server.stop, kwargs={"notice_seconds": 0.5})
    ending.start()
    running.until(lambda: running.server.service.draining)
    status, answer, headers = running.client.ask("GET", "/readyz")
    assert status == 503 and answer["draining"] and headers["connection"] == "close"
    late = ask_in_thread(running)
    running.until(lambda: running.server.service.batcher.waiting[0] == 2)
    running.bank.gate.set()
    assert [asked.result()[0] for asked in (*accepted, late)] == [200, 200, 200]
    ending.join(10)
    assert not ending.is_alive() and running.server.ended.is_set()
    with pytest.raises(ConnectionRefusedError):
        running.client.ask("GET", "/livez")


def test_what_is_not_answered_before_the_end_is_told(serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftwork.serve.server.END_SECONDS", 0.2)
    running, entered, hangs = serving(seconds=60.0, grace_seconds=0.1), threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        assert hangs.wait(20)

    running.bank.refresh = stuck
    changed(running, None)
    assert entered.wait(5)
    running.bank.gate.clear()
    asked = ThreadPoolExecutor(max_workers=1).submit(running.client.ask, "POST", "/v1/predict", ROW)
    running.until(lambda: running.bank.entered)
    began = time.monotonic()
    running.server.stop(notice_seconds=0)
    assert time.monotonic() - began < 4  # though neither the batch nor the change of the bank ends
    hangs.set()
    status, answer, headers = asked.result()
    assert status == 503 and "the server ended" in answer["error"]["what"] and headers["retry-after"] == "1"
    assert [line["status"] for line in running.lines() if "status" in line] == [503]


def test_two_servers_on_one_port(running: Any) -> None:
    with pytest.raises(ConfigError, match="another server may be running") as error:
        bind("127.0.0.1", running.server.port)
    assert f"127.0.0.1:{running.server.port}" in error.value.message and "--port" in error.value.do


def test_two_servers_that_open_their_banks_at_once(running: Any) -> None:
    with bind("127.0.0.1", 0) as first, socket.socket() as second:
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(first.getsockname())
        second.listen()
        with pytest.raises(ConfigError, match="another server may be running") as error:
            Server(running.server.service, "token", first).start()
        assert error.value.where == f"127.0.0.1:{first.getsockname()[1]}"


def test_answers_are_sent_at_once() -> None:
    with bind("127.0.0.1", 0) as listener:  # of any other protocol asyncio leaves Nagle's algorithm on
        assert listener.proto == socket.IPPROTO_TCP


def test_an_address_of_another_machine() -> None:
    with pytest.raises(ConfigError, match="cannot listen on this address"):
        bind("192.0.2.1", 0)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_name_is_no_address() -> None:
    with pytest.raises(ConfigError, match="not an address"):
        is_loopback("example.org")


def changed(running: Any, names: dict[str, Any] | None, **failing: str) -> None:
    """The folder after another process has written to it."""
    running.bank.coming, running.bank.failing = names, failing
    (running.bank.path / "new").write_text("{}")
    (running.bank.path / "new").replace(running.bank.path / "bank.json")


def test_tasks_come_change_and_go_without_a_restart(running: Any) -> None:
    tasks = dict(running.bank.tasks)
    tone = replace(tasks.pop("mood"), name="tone")
    changed(running, tasks | {"tone": tone, "topic": replace(tasks["topic"], version=2)})
    running.until(lambda: running.client.predict({"task": "tone", "text": "a"})[0] == 200)
    assert running.client.predict(ROW)[0] == 404
    assert running.client.ask("GET", "/v1/tasks/topic")[1]["version"] == 2
    assert {task["name"] for task in running.client.ask("GET", "/v1/tasks")[1]["tasks"]} == running.bank.tasks.keys()
    events = {(line["event"], line["task"]) for line in running.lines() if "task" in line}
    assert {("task opened", "tone"), ("task opened", "topic"), ("task removed", "mood")} <= events


def test_a_task_that_is_removed_while_it_waits(running: Any) -> None:
    first = occupied(running, waiting=1)
    running.bank.tasks = {name: task for name, task in running.bank.tasks.items() if name != "mood"}
    running.bank.gate.set()
    assert [asked.result()[0] for asked in first] == [404, 404]


def test_a_broken_task_is_listed_and_the_others_answer(serving: Any, bank: Any) -> None:
    bank.failing = {"mood": f"{bank.path}/tasks/mood/1: delta.safetensors is another one\n  got: sha256 /x"}
    running = serving()
    status, answer, headers = running.client.ask("POST", "/v1/predict", ROW)
    assert status == 503 and "delta.safetensors is another one" in answer["error"]["what"] and "retry-after" in headers
    assert str(bank.path) not in str(answer)
    assert running.client.predict({"task": "topic", "text": "a"})[0] == 200
    assert running.client.predict({"task": "*", "text": "a"})[1]["rows"][0]["answers"].keys() == {"topic", "names"}
    listed = running.client.ask("GET", "/v1/tasks")[1]["tasks"]
    assert {"name": "mood", "failed": "delta.safetensors is another one"} in listed
    status, answer, _ = running.client.ask("GET", "/readyz")
    assert status == 200 and answer["failed"] == ["mood"]


def test_a_task_that_turns_out_to_be_broken_is_told(running: Any) -> None:
    status, answer, headers = running.client.ask("POST", "/v1/predict", {"task": "mood", "text": "damaged"})
    assert (status, answer["error"]["what"]) == (503, "delta.safetensors is another one") and "retry-after" in headers
    assert str(running.bank.path) not in str(answer)


def test_a_row_that_finds_no_memory_is_told(running: Any) -> None:
    status, answer, headers = running.client.ask("POST", "/v1/predict", {"task": "mood", "text": "enormous"})
    assert status == 503 and answer["error"]["what"].startswith("one example needs more memory")
    assert "retry-after" in headers and running.client.predict(ROW)[0] == 200


def test_a_new_version_that_is_broken_leaves_the_old_one_served(running: Any) -> None:
    mood = running.bank.tasks["mood"]
    changed(running, running.bank.tasks | {"mood": mood}, mood="its self-test fails")
    running.until(lambda: any(line.get("event") == "task failed to open" for line in running.lines()))
    assert running.client.predict(ROW)[0] == 200
    assert running.client.ask("GET", "/v1/tasks/mood")[1]["version"] == 1


def test_a_bank_that_vanishes_goes_on_being_served(running: Any) -> None:
    running.bank.unreadable = StorageError("no such file or folder", where=str(running.bank.path))
    (running.bank.path / "bank.json").unlink()
    running.until(lambda: "trouble" in running.client.ask("GET", "/readyz")[1])
    assert running.client.predict(ROW)[0] == 200 and str(running.bank.path) not in str(
        running.client.ask("GET", "/readyz")
    )
    running.bank.unreadable = None
    changed(running, None)
    running.until(lambda: "trouble" not in running.client.ask("GET", "/readyz")[1])


def test_an_emptied_bank_answers_that_it_is_empty(running: Any) -> None:
    changed(running, {})
    running.until(lambda: running.client.predict(ROW)[0] == 404)
    assert running.client.predict(ROW | {"task": "*"})[0] == 404
    assert running.client.ask("GET", "/readyz")[0] == 200


def test_threads_take_turns_quickly_while_it_serves() -> None:
    before = sys.getswitchinterval()
    with quick_turns():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    assert sys.getswitchinterval() == before


def test_kernels_are_kept_within_bounds_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"LRU_CACHE_CAPACITY": "7"})
    keep_few_kernels()
    assert os.environ == {"LRU_CACHE_CAPACITY": "7", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32"}


def test_many_clients_at_once(running: Any) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        texts = [f"text {i}" for i in range(64)]
        found = list(pool.map(lambda text: running.client.predict({"task": "mood", "text": text}), texts))
    assert [answer["rows"][0]["answers"]["mood"]["label"] for _, answer in found] == [f"mood: {text}" for text in texts]


def test_the_listening_socket_is_closed_after_the_end(serving: Any) -> None:
    running = serving()
    running.server.stop(notice_seconds=0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", running.server.port))


def test_a_line_that_comes_while_others_are_written_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    records = Records(log)

    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            records._write()  # as the log's thread may at any moment
            return datetime.now(zone)

    monkeypatch.setattr("graftwork.serve.request_log.datetime", Clock)
    records.line({"number": 1})
    records._write()
    assert json.loads(log.getvalue())["number"] == 1
