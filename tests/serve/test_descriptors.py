"""File descriptors: as many connections as the system allows, and a short log when there are none left."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from graftwork.serve.server_limits import KEPT_FREE, connections_within

ENDLESS = resource.RLIM_INFINITY


@pytest.fixture
def limit() -> Iterator[None]:
    """The limit of this process is set back after the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "expected"),
    [
        (256, 10_000, 20 + KEPT_FREE + 1000, 1000),
        (256, ENDLESS, 20 + KEPT_FREE + 1000, 1000),
        (256, 512, 512, 512 - 20 - KEPT_FREE),
        (100, 100, 100, 80 - KEPT_FREE),
        (30, 30, 30, 1),
        (4096, 4096, 4096, 1000),
        (ENDLESS, ENDLESS, ENDLESS, 1000),
    ],
)
def test_connections_fit_into_the_limit(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int, expected: int
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, wanted: limits.append(wanted))
    monkeypatch.setattr(os, "listdir", lambda folder: ["0"] * 20)
    assert connections_within(1000) == expected and limits[-1] == (raised, hard)


def test_a_limit_that_can_not_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, wanted: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, ENDLESS))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    monkeypatch.setattr(os, "listdir", lambda folder: ["0"] * 20)
    assert connections_within(1000) == 256 - 20 - KEPT_FREE


def test_fewer_connections_are_told(serving: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftwork.serve.server.connections_within", lambda most: 2)
    running = serving()
    (line,) = [line for line in running.lines() if "connections" in line]
    assert line["connections"] == 2 and "fewer connections than 1,000" in line["event"]
    with socket.create_connection(("127.0.0.1", running.server.port)) as first, socket.socket() as second:
        second.connect(first.getpeername())
        running.until(lambda: len(running.server._uvicorn.server_state.connections) == 2)
        with socket.create_connection(first.getpeername()):
            assert first.recv(12) == b"HTTP/1.1 429"
    running.server.stop(notice_seconds=0)  # its descriptors are free before the next test counts them


@pytest.mark.usefixtures("limit")
def test_without_descriptors_the_log_stays_short_and_the_server_comes_back(
    running: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.1)
    with socket.socket() as waiting:  # opened before there are none left
        waiting.settimeout(5)
        highest = max(int(name) for name in os.listdir("/dev/fd")) + 8  # some are free, whatever has been opened
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        taken: list[int] = []
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        waiting.connect(("127.0.0.1", running.server.port))
        waiting.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        running.until(lambda: any("trouble" in line.get("event", "") for line in running.lines()))
        time.sleep(0.3)  # it is tried again meanwhile
        troubles = [line["why"] for line in running.lines() if "trouble" in line.get("event", "")]
        assert troubles == ["socket.accept() out of system resource: [Errno 24] Too many open files"]
        for number in taken:
            os.close(number)
        assert waiting.recv(12) == b"HTTP/1.1 200"
    assert capfd.readouterr().err == ""
