"""Connection limits around uvicorn's protocol: number of connections, length of the request head, and its duration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.server_limits import ServerLimits

CHUNKED = 8  # maximum size of a chunked body on the wire, in multiples of the body limit
PHRASES = {408: "Request Timeout", 429: "Too Many Requests", 431: "Request Header Fields Too Large"}


class Door(asyncio.Protocol):
    """A protocol that forwards data to uvicorn, closes connections beyond the limits, and calls `turned_away`."""

    def __init__(
        self,
        limits: ServerLimits,
        turned_away: Callable[[HttpRefusal], None],
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ):
        self._limits, self._turned_away = limits, turned_away
        self._inner = HttpToolsProtocol(config, server_state, app_state, _loop)
        self._connections = server_state.connections
        self._bytes = 0  # received since the last complete head
        self._cycle: object = None
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection, or refuse it beyond the limit."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)
        if len(self._connections) > self._limits.connections:
            self._close(busy("too many connections"))
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Forward the data, unless the request is too long."""
        if self._transport.is_closing():
            return
        if self._clock is None and not self._under_way:
            self._bytes = 0
            self._expect_head()
        self._bytes += len(data)
        self._inner.data_received(data)
        if self._inner.cycle is not self._cycle:
            self._cycle, self._bytes = self._inner.cycle, 0
            self._stop_clock()
        elif self._bytes > self._limits.head_bytes and not self._under_way:
            self._close(HttpRefusal(431, "the head is too long", expected=f"at most {self._limits.head_bytes:,} bytes"))
        elif self._bytes > self._limits.head_bytes + CHUNKED * self._limits.body_bytes:
            self._transport.abort()

    @property
    def _under_way(self) -> bool:
        """True from a complete request head to the end of its response."""
        return self._inner.cycle is not None and not self._inner.cycle.response_complete

    def _expect_head(self) -> None:
        late = HttpRefusal(408, "the head did not arrive in time", expected=f"within {self._limits.head_seconds:g} s")
        self._clock = asyncio.get_running_loop().call_later(self._limits.head_seconds, self._close, late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _close(self, refused: HttpRefusal) -> None:
        """Refuse and close the connection; the reason is sent if it is still open."""
        self._stop_clock()
        if self._transport.is_closing():
            return
        self._turned_away(refused)
        body = bytes(refused.response().body)
        retry = "" if refused.retry_after is None else f"Retry-After: {refused.retry_after}\r\n"
        head = f"HTTP/1.1 {refused.status} {PHRASES[refused.status]}\r\nContent-Type: application/json\r\n{retry}"
        self._transport.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        self._transport.close()

    def eof_received(self) -> None:
        """Handle the end of the client's data."""
        self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection."""
        self._stop_clock()
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Pause writing: the client reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Resume writing."""
        self._inner.resume_writing()
