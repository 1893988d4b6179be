"""Connection limits in uvicorn's protocol: number of connections, length and duration of the request head, its host."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.server_limits import ServerLimits

CHUNKED = 8  # maximum size of a chunked body on the wire, in multiples of the body limit
HOST = re.compile(rb"[\w.~!$&'()*+,;=:%\[\]-]*", re.ASCII)
TLS_HELLO = b"\x16\x03"


class LimitedHttpProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with limits on connections, and on the length and duration of a request's head.

    `turned_away` is called with each refusal and the client's address.
    """

    def __init__(
        self,
        limits: ServerLimits,
        turned_away: Callable[[HttpRefusal, str], None],
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ):
        super().__init__(config, server_state, app_state, _loop)
        self._limits, self._turned_away = limits, turned_away
        self._bytes = 0  # received since the last complete head
        self._asked = 0.0  # when it was opened, or the last head was complete
        self._refused = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept a connection. Beyond the limit, close the one idle for longest, or this one if none is idle."""
        super().connection_made(transport)
        self._asked = self.loop.time()
        self._expect_head()
        if len(self.connections) > self._limits.connections:
            others = (
                other for other in self.connections if isinstance(other, LimitedHttpProtocol) and other is not self
            )
            idle = (other for other in others if not (other._under_way or other.transport.is_closing()))
            min(idle, key=lambda other: other._asked, default=self)._make_room()

    def data_received(self, data: bytes) -> None:
        """Parse the data, unless the request is too long."""
        if self._refused or self.transport.is_closing():
            return
        if self._clock is None and not self._under_way:
            self._bytes = 0
            self._expect_head()
        if self._bytes == 0 and data.startswith(TLS_HELLO):
            self._refuse(
                HttpRefusal(
                    400, "this port does not accept TLS", do="use http://, or a proxy in front of it that accepts TLS"
                )
            )
            return
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > self._limits.head_bytes and not self._under_way:
            self._refuse(self._too_long())
        elif self._bytes > self._limits.head_bytes + CHUNKED * self._limits.body_bytes:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """Begin a request. Raises `HttpRefusal`, which ends the parsing, for a head that is too long or has no host."""
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if len(self.url) + size > self._limits.head_bytes:
            raise self._too_long()
        hosts = [value for name, value in self.headers if name == b"host"]
        known = len(hosts) == 1 and HOST.fullmatch(hosts[0])
        if not known and (hosts or self.parser.get_http_version() != "1.0"):
            raise HttpRefusal(
                400, "the Host header is missing or not valid", where="Host", expected="one host name or address"
            )
        self._bytes, self._asked = 0, self.loop.time()
        self._stop_clock()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be parsed; called by uvicorn."""
        error = sys.exception()
        if error is not None and isinstance(error.__context__, HttpRefusal):
            self._refuse(error.__context__)
        else:
            self._refuse(
                HttpRefusal(400, "the request is not valid HTTP/1.1", got=str(error), do="send an HTTP/1.1 request")
            )

    @property
    def _under_way(self) -> bool:
        """True from a complete request head to the end of its response."""
        return self.cycle is not None and not self.cycle.response_complete

    def _too_long(self) -> HttpRefusal:
        return HttpRefusal(
            431, "the request line and headers are too long", expected=f"at most {self._limits.head_bytes:,} bytes"
        )

    def _expect_head(self) -> None:
        late = HttpRefusal(
            408,
            "the request line and headers did not arrive in time",
            expected=f"within {self._limits.head_seconds:g} s",
        )
        self._clock = self.loop.call_later(self._limits.head_seconds, self._refuse, late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _make_room(self) -> None:
        if self._refused or self.timeout_keep_alive_task is not None:  # between requests no answer is waited for
            self.transport.close()
        else:
            self._refuse(busy("too many connections"))

    def _refuse(self, refused: HttpRefusal) -> None:
        """Send a refusal and close the connection; requests before it on the connection are answered first."""
        self._stop_clock()
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._turned_away(refused, self.client[0] if self.client else "")
        if self._under_way and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        body = bytes(refused.response().body)
        retry = "" if refused.retry_after is None else f"Retry-After: {refused.retry_after}\r\n"
        status = f"{refused.status} {HTTPStatus(refused.status).phrase}"
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{retry}"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        if refused.status == 429 or self._under_way:
            self.transport.close()
        else:  # a client cut off while sending reads no response
            self.transport.write_eof()
            self.loop.call_later(self._limits.discard_seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._stop_clock()
        super().connection_lost(exc)
