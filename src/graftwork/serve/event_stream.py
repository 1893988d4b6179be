"""Server-sent events: a text that is told while it is written, as one request hears it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

MEDIA = "text/event-stream"
UNBUFFERED = {"X-Accel-Buffering": "no"}  # else nginx holds the events back until there are many
HALF_CHARACTER = "\ufffd"  # at the end of a text: a character of which tokens are missing


def wants_events(accept: str) -> bool:
    """Return whether a client that sends this header `Accept` reads events, and not JSON."""
    named = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return MEDIA in named and "application/json" not in named


def event(name: str, content: bytes) -> bytes:
    """Return an event; the content has no line breaks."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), content)


class TextListener:
    """The text of one request: told in the thread of batches, heard in the event loop that it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._texts: asyncio.Queue[str | None] = asyncio.Queue()
        self.heard = ""

    def tell(self, text: str) -> None:
        """Take the text so far; called in any thread."""
        with contextlib.suppress(RuntimeError):  # the event loop has ended: no client is waiting
            self._loop.call_soon_threadsafe(self._texts.put_nowait, text)

    def end(self, _done: object) -> None:
        """Note that nothing more will be told; called in the event loop."""
        self._texts.put_nowait(None)

    async def pieces(self, deadline: float) -> AsyncIterator[str]:
        """Yield what the text grows by, until its end. Raises `TimeoutError` at the deadline, a monotonic time."""
        while True:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                text = await self._texts.get()
            if text is None:
                return
            if piece := self.piece(text.rstrip(HALF_CHARACTER)):
                yield piece

    def piece(self, text: str) -> str:
        """Return what a text adds to what was heard; "" where it goes on otherwise."""
        if not text.startswith(self.heard):
            return ""
        added, self.heard = text[len(self.heard) :], text
        return added
