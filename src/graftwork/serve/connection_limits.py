"""A connection: uvicorn's protocol behind limits on how many there are, how long a head is, and how slowly it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.server_limits import ServerLimits

CHUNKED = 8  # times the bytes of a body that its chunks may take
PHRASES = {408: "Request Timeout", 429: "Too Many Requests", 431: "Request Header Fields Too Large"}


class Door(asyncio.Protocol):
    """Hands on what comes in; closes the connection of a client that asks too much of it, and tells `turned_away`."""

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
        self._bytes = 0  # since the last head was whole
        self._cycle: object = None
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuses one too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)
        if len(self._connections) > self._limits.connections:
            self._close(busy("too many connections"))
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Hands on, unless it is more than a request may be."""
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
        """Whether a request's head is whole and its answer not yet."""
        return self._inner.cycle is not None and not self._inner.cycle.response_complete

    def _expect_head(self) -> None:
        late = HttpRefusal(408, "the head did not arrive in time", expected=f"within {self._limits.head_seconds:g} s")
        self._clock = asyncio.get_running_loop().call_later(self._limits.head_seconds, self._close, late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _close(self, refused: HttpRefusal) -> None:
        """Tell the client why, where that is still possible."""
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
        """The client sends no more."""
        self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        self._stop_clock()
        self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It reads again."""
        self._inner.resume_writing()
