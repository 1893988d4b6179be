"""`graft serve`: what it refuses, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from graftwork.bank.bank import Bank
from graftwork.cli.main import main
from graftwork.serve.server import Server, signals

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets for its process is forgotten with the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


@pytest.fixture(autouse=True)
def ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No load balancer has to notice that the server ends."""
    monkeypatch.setattr(Server.stop, "__defaults__", (0.0,))


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return Bank.create(tmp_path / "shop.bank").path


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def ask(port: int, path: str, token: str = TOKEN) -> Any:
    """The JSON of a server that is about to answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
    end = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.02)


def asked_then_ended(port: int, path: str, number: int) -> list[Any]:
    """What a thread hears from the server that the main thread runs, before it sends it a signal."""
    heard: list[Any] = []

    def work() -> None:
        try:
            heard.append(ask(port, path))
        finally:
            os.kill(os.getpid(), number)

    threading.Thread(target=work).start()
    return heard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_answers_and_ends_with_0(
    bank: Path, token_file: Path, number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    port, hung_up = free_port(), signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    heard = asked_then_ended(port, "/v1/tasks", number)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["serve", str(bank), "--port", str(port), "--token-file", str(token_file)]) == 0
    assert heard == [{"bank": {"backbone": None, "precision": None, "tasks": 0}, "tasks": []}]
    out, err = capfd.readouterr()
    assert out == f"http://127.0.0.1:{port}/\n"
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in lines if "event" in line] == ["draining", "ended"]
    assert [line["route"] for line in lines if "route" in line] == ["/v1/tasks"]
    assert signal.getsignal(signal.SIGTERM) is before and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    signal.signal(signal.SIGHUP, hung_up)


def test_under_nohup_a_closed_terminal_does_not_end_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as wanted:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not wanted.wait(0.1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_while_tasks_are_opened_nobody_is_let_in_and_ctrl_c_ends_it(
    bank: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    port, refused = free_port(), []

    def slowly(self: Bank) -> dict[str, str]:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            refused.append(port)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError("nothing came of the signal")

    monkeypatch.setattr(Bank, "load_all", slowly)
    assert main(["serve", str(bank), "--port", str(port)]) == 130
    assert refused == [port] and capfd.readouterr().out == ""


def test_a_random_token_is_in_the_link(bank: Path, capfd: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    asked_then_ended(port, "/livez", signal.SIGTERM)
    assert main(["serve", str(bank), "--port", str(port)]) == 0
    out, err = capfd.readouterr()
    link, token = out.strip().split("#token=")
    assert link == f"http://127.0.0.1:{port}/" and len(token) == 32 and token not in err


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    return capsys.readouterr().err


def test_others_may_not_reach_it_without_a_token_of_ones_own(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, str(bank), "--host", "0.0.0.0")
    assert "needs a token file" in said and "--token-file" in said


def test_a_token_that_others_can_read(bank: Path, token_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token_file.chmod(0o644)
    said = refusal(capsys, str(bank), "--token-file", str(token_file))
    assert "read by others" in said and "0644" in said and "chmod 600" in said


def test_a_port_that_is_taken(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refusal(capsys, str(bank), "--port", str(taken.getsockname()[1]))
    assert "another server may be running" in said and "--port" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-queue", "0"], "'--max-queue': 0 is not in the range x>=1"),
        (["--max-batch-tokens", "-1"], "'--max-batch-tokens': -1 is not in the range x>=1"),
        (["--timeout", "0"], "--timeout"),
        (["--timeout", "nan"], "--timeout"),
        (["--keep-alive", "-1"], "'--keep-alive': -1 is not in the range 0<=x<=3600"),
        (["--grace", "3601"], "'--grace': 3601 is not in the range 0<=x<=3600"),
        (["--threads", "0"], "--threads must be at least 1"),
        (["--host", "example.org"], "--host is not an address"),
        (["--port", "70000"], "70000"),
    ],
)
def test_flags_out_of_range(bank: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(capsys, str(bank), *arguments)


def test_no_bank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no bank here" in refusal(capsys, str(tmp_path), "--port", "0")
