"""Connections that are slow, endless, many or no HTTP at all."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

ROW = json.dumps({"task": "mood", "text": "a"}).encode()
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a-token-for-tests\r\n"
TYPED = HEAD + b"Content-Type: application/json\r\n"
WHOLE = TYPED + b"Content-Length: %d\r\n\r\n" % len(ROW) + ROW


def talk(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send the parts, then read until the server closes or is silent for a while."""
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
        heard = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            connection.settimeout(0.5)
            while more := connection.recv(65536):
                heard += more
        except (TimeoutError, ConnectionError):
            pass
        return heard


def status(heard: bytes) -> int:
    return int(heard.split()[1])


def test_a_chunked_body_without_length(running: Any) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, bytes([byte])) for byte in ROW)
    heard = talk(running.server.port, TYPED + b"Transfer-Encoding: chunked\r\n\r\n", chunks, b"0\r\n\r\n")
    assert status(heard) == 200


def test_chunks_beyond_the_limit(serving: Any) -> None:
    running = serving(body_bytes=1000, discard_seconds=0.1)
    chunk = b"1f4\r\n" + b" " * 500 + b"\r\n"
    heard = talk(running.server.port, TYPED + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 5)
    assert status(heard) == 413 and b"connection: close" in heard.lower()


@pytest.mark.parametrize("head", [TYPED, TYPED.replace(b"Bearer", b"Wrong"), TYPED.replace(b"/json", b"/xml")])
def test_a_refused_client_may_send_to_the_end_and_ask_again(serving: Any, head: bytes) -> None:
    running = serving(body_bytes=1000)
    refused = head + b"Content-Length: 3000\r\n\r\n"
    heard = talk(running.server.port, refused, b" " * 1500, b" " * 1500, WHOLE, pause=0.02)
    assert status(heard) in (401, 413, 415) and heard.count(b"HTTP/1.1 200") == 1


def test_a_client_that_asks_first_is_not_told_to_go_on(serving: Any) -> None:
    running = serving(body_bytes=1000)
    heard = talk(running.server.port, TYPED + b"Content-Length: 3000\r\nExpect: 100-continue\r\n\r\n")
    assert status(heard) == 413 and b"100 Continue" not in heard


def test_a_body_that_comes_too_slowly(serving: Any) -> None:
    running = serving(body_seconds=0.1)
    heard = talk(running.server.port, TYPED + b"Content-Length: 100\r\n\r\n", b"{", pause=0.3)
    assert status(heard) == 408


def test_a_head_that_comes_too_slowly(serving: Any) -> None:
    running = serving(head_seconds=0.1)
    assert status(talk(running.server.port, b"GET /livez HTTP/1.1\r\n", pause=0.3)) == 408
    assert status(talk(running.server.port, pause=0.3)) == 408


def test_a_head_that_never_ends(serving: Any) -> None:
    running = serving(head_bytes=2000)
    line = b"X-A: " + b"a" * 1000 + b"\r\n"
    assert status(talk(running.server.port, b"GET /livez HTTP/1.1\r\n", line, line, line, pause=0.02)) == 431


@pytest.mark.parametrize("size", [1500, 2500, 70_000, 200_000])
def test_a_long_head_is_refused_whatever_its_pieces(serving: Any, size: int) -> None:
    running = serving(head_bytes=2000)
    expected, last = 200 if size < 2000 else 431, b"Host: x\r\nConnection: close\r\n"
    for head in (b"GET /livez HTTP/1.1\r\n%sX-A: %%s\r\n\r\n" % last, b"GET /livez?%%s HTTP/1.1\r\n%s\r\n" % last):
        whole = head % (b"a" * size)
        cut = len(whole) * 9 // 10
        assert status(talk(running.server.port, whole)) == expected
        assert status(talk(running.server.port, whole[:cut], whole[cut:], pause=0.02)) == expected
    many = b"GET /livez HTTP/1.1\r\n" + last + b"A:b\r\n" * (size // 5) + b"\r\n"
    assert status(talk(running.server.port, many)) == expected


def test_a_long_head_behind_a_request_on_its_connection(serving: Any) -> None:
    running = serving(head_bytes=2000)
    heard = talk(running.server.port, WHOLE + b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 3000 + b"\r\n\r\n")
    assert heard.count(b"HTTP/1.1") == heard.count(b"HTTP/1.1 200") == 1  # what was asked before is answered
    running.until(lambda: [line["status"] for line in running.lines() if "why" in line] == [431])


@pytest.mark.parametrize(
    ("hosts", "version", "expected"),
    [
        (["x"], "1.1", 200),
        (["[::1]:8080"], "1.1", 200),
        ([""], "1.1", 200),
        ([], "1.1", 400),
        (["x", "x"], "1.1", 400),
        (["x y"], "1.1", 400),
        (["x/y"], "1.1", 400),
        (["me@x"], "1.1", 400),
        ([], "1.0", 200),
        (["x", "y"], "1.0", 400),
    ],
)
def test_one_host_is_named(running: Any, hosts: list[str], version: str, expected: int) -> None:
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    heard = talk(running.server.port, f"GET /livez HTTP/{version}\r\n{lines}\r\n".encode())
    assert status(heard) == expected and (expected == 200 or b'"where":"Host"' in heard)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "this port does not accept TLS"),
        (b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", "the request is not valid HTTP/1.1: Invalid method encountered"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", "the request is not valid HTTP/1.1: "),
        (b"GET /livez HTTP/1.1\r\n\r\n", "the Host header is missing or not valid"),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", "the request is not valid HTTP/1.1: "),
        (TYPED + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "the request is not valid HTTP/1.1: Invalid character"),
    ],
)
def test_what_is_no_request_is_told_counted_and_logged(running: Any, raw: bytes, why: str) -> None:
    heard = talk(running.server.port, raw)
    assert status(heard) == 400
    assert json.loads(heard.partition(b"\r\n\r\n")[2])["error"]["what"] == why.partition(":")[0]
    counted = 'graftwork_requests_total{route="other",status="400"} 1.0'
    assert counted in running.client.ask("GET", "/metrics")[1]
    (line,) = [line for line in running.lines() if "why" in line]
    assert line["why"].startswith(why) and (line["status"], line["client"]) == (400, "127.0.0.1")


def test_how_long_an_idle_connection_is_kept(serving: Any) -> None:
    running = serving(keep_alive_seconds=0)
    assert talk(running.server.port, WHOLE, WHOLE, pause=0.3).count(b"HTTP/1.1 200") == 1


def test_one_connection_too_many(serving: Any) -> None:
    running = serving(connections=2)
    running.bank.gate.clear()
    where = ("127.0.0.1", running.server.port)
    with socket.create_connection(where) as first, socket.create_connection(where) as second:
        for connection in (first, second):
            connection.sendall(WHOLE)
        doors = running.server._uvicorn.server_state.connections
        running.until(lambda: [door._under_way for door in doors] == [True, True])
        heard = talk(running.server.port, WHOLE)
        assert status(heard) == 429 and b"Retry-After: 1" in heard
        assert [line["why"] for line in running.lines() if line.get("status") == 429] == ["too many connections"]
        running.bank.gate.set()
        assert status(first.recv(65536)) == status(second.recv(65536)) == 200
    running.until(lambda: status(talk(running.server.port, WHOLE)) == 200)


def test_the_connection_without_a_request_for_longest_makes_room(serving: Any) -> None:
    running = serving(connections=2)
    where, asks = ("127.0.0.1", running.server.port), b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    doors = running.server._uvicorn.server_state.connections
    with socket.create_connection(where) as silent, socket.create_connection(where) as idle:
        running.until(lambda: len(doors) == 2)
        idle.sendall(WHOLE)
        while not idle.recv(65536).endswith(b"}"):
            pass
        assert status(talk(running.server.port, asks)) == 200
        assert status(silent.recv(65536)) == 429
        with socket.create_connection(where):
            assert status(talk(running.server.port, asks)) == 200
        assert idle.recv(1) == b""  # nothing that its client would take for the next answer
    assert [line["why"] for line in running.lines() if line.get("status") == 429] == ["too many connections"]


def test_what_is_refused_at_the_door_is_counted_and_logged(serving: Any) -> None:
    running = serving(head_bytes=2000, head_seconds=0.1)
    port = running.server.port
    assert status(talk(port, b"GET /livez HTTP/1.1\r\nHost: x\r\n", b"X-A: " + b"a" * 3000)) == 431
    assert status(talk(port, pause=0.3)) == 408
    counts = running.client.ask("GET", "/metrics")[1]
    assert 'graftwork_requests_total{route="other",status="431"} 1.0' in counts
    assert 'graftwork_requests_total{route="other",status="408"} 1.0' in counts
    lines = [(line["status"], line["why"]) for line in running.lines() if "why" in line]
    assert lines == [
        (431, "the request line and headers are too long"),
        (408, "the request line and headers did not arrive in time"),
    ]


def test_requests_one_after_another_and_at_once_on_a_connection(running: Any) -> None:
    assert talk(running.server.port, WHOLE, WHOLE, pause=0.05).count(b"HTTP/1.1 200") == 2
    assert talk(running.server.port, WHOLE + WHOLE + WHOLE).count(b"HTTP/1.1 200") == 3


def test_a_long_body_before_a_head_in_two_parts(serving: Any) -> None:
    running = serving(head_bytes=300)
    body = ROW[:-1] + b" " * 5000 + b"}"
    first = TYPED + b"Content-Length: %d\r\n\r\n" % len(body)
    heard = talk(running.server.port, first, body[:3000], body[3000:], WHOLE[:20], WHOLE[20:], pause=0.05)
    assert heard.count(b"HTTP/1.1 200") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"POST /v1/predict HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nA B: c\r\n\r\n",
        TYPED + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        TYPED + b"Content-Length: 99999999999999999999\r\n\r\n",
        b"GET /v1/tasks HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_no_http(running: Any, raw: bytes) -> None:
    heard = talk(running.server.port, raw)
    assert heard == b"" or 400 <= status(heard) < 500
    assert status(talk(running.server.port, WHOLE)) == 200
