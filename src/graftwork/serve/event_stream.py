"""Server-sent events: the text that a task writes for one request, sent to the client while it is written."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

MEDIA = "text/event-stream"
UNBUFFERED = {"X-Accel-Buffering": "no"}  # without it nginx holds back events until there are many
HALF_CHARACTER = "\ufffd"  # ends a text whose last character is incomplete, as some of its tokens are missing


def wants_events(accept: str) -> bool:
    """Return whether a client that sends this `Accept` header wants events instead of JSON."""
    named = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return MEDIA in named and "application/json" not in named


def event(name: str, content: bytes) -> bytes:
    """Return an event; the content has no line breaks."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), content)


class TextListener:
    """The text of one request, passed from the batching thread to the event loop in which this object was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._texts: asyncio.Queue[str | None] = asyncio.Queue()
        self.heard = ""

    def tell(self, text: str) -> None:
        """Pass the text so far to the event loop; called in any thread."""
        with contextlib.suppress(RuntimeError):  # the event loop has ended: no client is waiting
            self._loop.call_soon_threadsafe(self._texts.put_nowait, text)

    def end(self, _done: object) -> None:
        """Mark the end of the text; called in the event loop."""
        self._texts.put_nowait(None)

    async def pieces(self, deadline: float) -> AsyncIterator[str]:
        """Yield each addition to the text, until its end. Raises `TimeoutError` at the deadline, a monotonic time."""
        while True:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                text = await self._texts.get()
            if text is None:
                return
            if piece := self.piece(text.rstrip(HALF_CHARACTER)):
                yield piece

    def piece(self, text: str) -> str:
        """Return what a text adds to what was sent before; "" if it does not begin with that."""
        if not text.startswith(self.heard):
            return ""
        added, self.heard = text[len(self.heard) :], text
        return added
