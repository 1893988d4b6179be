"""Malformed requests, and the conditions that every response must meet.

Half are JSON derived from the schema: a valid body with a few places changed. The others are bytes: valid requests that
are truncated, duplicated, corrupted, or have a wrong length or framing.
"""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ODD: Sequence[Any] = (
    None, True, False, 0, -1, 1e308, 10**400, 0.1, "", " ", "\x00", "\ud800", "é" * 300, "a" * 30_000, "\u202e", "*",
    "..", "../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1/", "%s%n", "{{7*7}}", "' or 1=1 --", [], {}, [[]],
    [None], {"a": {}}, ["a"] * 300, {"text": "a"}, "NaN", "ﷺ" * 50, "\u0000" * 20, "🏳️‍🌈" * 20,
)  # fmt: skip
NAMES = ("task", "rows", "text", "text_a", "text_b", "words", "question", "context", "choices", "image", "block",
         "head", "__class__", "")  # fmt: skip
TEXTS = ("a warm film", "where is my parcel?", "x", "1,000.50 € …", "ü", "你好 世界", "\n\t.")
PATHS = ("/v1/predict", "/v1/predict", "/v1/predict", "/v1/attention", "/v1/tasks", "/v1/tasks/mood", "/v1/tasks/%00",
         "/v1/tasks/..%2f..", "/metrics", "/docs", "/openapi.json", "/livez", "/readyz", "/", "/nothing", "//", "/v1/",
         "/page/page.js", "/page/..%2fserver.py", "/" + "a" * 3000, "*", "http://x/livez", "/livez?x=%ff",
         "/é")  # fmt: skip
METHODS = (
    "POST",
    "POST",
    "POST",
    "GET",
    "GET",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "BREW",
)
INSIDE = re.compile(
    rb"Traceback|\.py\b|site-packages|graftwork\.|/home/|/root/|/tmp/|/usr/|/opt/|<class |object at 0x"
    rb"|[A-Z][a-z]+Error\b|Exception\b|" + re.escape(bytes(Path(__file__).resolve().parents[2]))
)  # names of internals of the program or the machine


class Fuzzer:
    """A generator of requests for a server; the same seed gives the same requests."""

    def __init__(self, schema: Mapping[str, Any], tasks: Sequence[str], token: str, seed: int):
        self._schemas = schema["components"]["schemas"]
        self._draw = random.Random(seed)
        self._tasks, self._token = list(tasks), token

    def request(self) -> tuple[bytes, bool]:
        """Return one request, and whether it is well framed, so that a response is due."""
        whole = self._whole()
        return (whole, True) if self._draw.random() < 0.5 else (self._spoilt(whole), False)

    def _whole(self) -> bytes:
        """Return a well-framed request with an unusual body, path or headers."""
        draw = self._draw
        body = self._body()
        content = self._encoded(body)
        path = "/v1/predict" if draw.random() < 0.7 else draw.choice(PATHS)
        method = "POST" if path == "/v1/predict" and draw.random() < 0.9 else draw.choice(METHODS)
        headers = [
            b"Host: x",
            b"Authorization: "
            + draw.choice([f"Bearer {self._token}".encode()] * 20 + [b"Bearer", b"Basic ::", b"\xff", b""]),
            b"Content-Type: "
            + draw.choice([b"application/json"] * 20 + [b"text/plain", b"application/json; charset=utf-16", b"x"]),
        ]
        if draw.random() < 0.05:
            headers.append(
                draw.choice([b"Content-Encoding: gzip", b"Expect: 100-continue", b"X: " + b"y" * 9000, b"Upgrade: h2c"])
            )
        if draw.random() < 0.1:
            cut = draw.randrange(len(content) + 1)
            parts = [part for part in (content[:cut], content[cut:]) if part]
            content = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            headers.append(b"Transfer-Encoding: chunked")
        else:
            headers.append(b"Content-Length: %d" % len(content))
        return b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), *headers, b"", content])

    def _spoilt(self, whole: bytes) -> bytes:
        """Return a corrupted copy of a well-framed request."""
        draw = self._draw
        place = draw.randrange(len(whole))
        noise = draw.randbytes(draw.randrange(1, 40))
        kind = draw.randrange(8)
        if kind == 0:
            return whole[:place]
        if kind == 1:
            return whole[:place] + noise + whole[place:]
        if kind == 2:
            return whole[:place] + noise + whole[place + len(noise) :]
        if kind == 3:
            return re.sub(
                rb"Content-Length: \d+", b"Content-Length: %d" % draw.choice([-1, 0, 1, 10**6, 10**7, 10**30]), whole
            )
        if kind == 4:
            return whole.replace(b"\r\n", draw.choice([b"\n", b"\r", b"\r\n\r\n", b"\0\r\n"]), draw.randrange(1, 5))
        if kind == 5:
            return whole + whole[:place]
        if kind == 6:
            return draw.randbytes(draw.randrange(1, 300))
        return whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :]

    def _body(self) -> Any:
        body = self._valid({"$ref": f"#/components/schemas/{self._draw.choice(['Row', 'ManyRows'])}"}, "")
        for _ in range(self._draw.choice([0, 0, 1, 1, 1, 2, 4])):
            body = self._changed(body)
        return body

    def _valid(self, schema: Mapping[str, Any], name: str) -> Any:
        """Return a value that fits a schema, for the field `name`."""
        draw = self._draw
        if "$ref" in schema:
            return self._valid(self._schemas[schema["$ref"].rpartition("/")[2]], name)
        if some := schema.get("oneOf") or schema.get("anyOf"):  # the first is the input of most tasks
            return self._valid(draw.choice([some[0], *some]), name)
        if schema["type"] == "object":
            return {key: self._valid(of, key) for key, of in schema["properties"].items()}
        if schema["type"] == "array":
            least = schema.get("minItems", 0)
            return [self._valid(schema["items"], name) for _ in range(draw.randrange(least, least + 4))]
        return draw.choice([draw.choice(self._tasks), "*"]) if name == "task" else draw.choice(TEXTS)

    def _changed(self, value: Any) -> Any:
        """Return the same value with one place changed."""
        draw = self._draw
        if isinstance(value, dict) and value and draw.random() < 0.8:
            key = draw.choice(list(value))
            kind = draw.randrange(4)
            if kind == 0:
                return {name: item for name, item in value.items() if name != key}
            if kind == 1:
                return value | {draw.choice(NAMES): draw.choice(ODD)}
            return value | {key: self._changed(value[key])}
        if isinstance(value, list) and value and draw.random() < 0.8:
            place = draw.randrange(len(value))
            return [*value[:place], self._changed(value[place]), *value[place + 1 :]]
        return draw.choice(ODD)

    def _encoded(self, body: Any) -> bytes:
        draw = self._draw
        kind = draw.randrange(40)
        text = json.dumps(body, ensure_ascii=draw.random() < 0.5 or "\\ud8" in json.dumps(body))
        if kind == 0:
            return text.encode("utf-16", errors="surrogatepass")
        if kind == 1:
            return text.encode("latin-1", errors="replace")
        if kind == 2:
            return b"[" * draw.choice([10, 1000, 100_000])
        if kind == 3:
            return text.encode() + b" " * draw.choice([10, 999_000, 1_100_000])
        if kind == 4:
            return (
                b'{"task":' + draw.choice([b"NaN", b"-Infinity", b"1" * 5000, b'"\\ud800"', b"1e999", b"\xff"]) + b"}"
            )
        if kind == 5:
            return b'{"a":' * draw.choice([5, 900, 3000]) + b"1" + b"}" * draw.choice([5, 900, 3000])
        return text.encode()


def exchange(port: int, raw: bytes, seconds: float) -> bytes:
    """Send bytes over a new connection; return what is received within so many seconds."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(raw)
            while not is_whole(heard, raw.startswith(b"HEAD ")) and (more := connection.recv(65536)):
                heard += more
        except (TimeoutError, ConnectionError):
            pass  # closed before all was sent, or no request was seen: return what was received
    return heard


def is_whole(heard: bytes, only_head: bool) -> bool:
    """Return whether this is a complete response, not only `100 Continue`."""
    while heard.startswith(b"HTTP/1.1 100"):
        heard = heard.partition(b"\r\n\r\n")[2]
    head, end, body = heard.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    return bool(end) and (only_head or (length is not None and len(body) >= int(length[1])))


def faults(heard: bytes) -> list[str]:
    """Return the faults of a response: a status of 500 or more, leaked internals, or no HTTP."""
    found = []
    statuses = [int(code) for code in re.findall(rb"^HTTP/1\.1 (\d{3})", heard, flags=re.MULTILINE)]
    if heard and not statuses:
        found.append("no HTTP")
    found += [f"status {status}" for status in statuses if status >= 500]
    if leak := INSIDE.search(without_answers(heard)):
        found.append(f"inside: {leak.group().decode(errors='replace')}")
    return found


def without_answers(heard: bytes) -> bytes:
    """Return the text to search for internals: pages and scripts are public and left out."""
    return b"" if b"text/html" in heard or b"text/javascript" in heard or b"text/css" in heard else heard
