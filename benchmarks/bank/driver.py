"""A load-generator process: reads a plan, sends requests, times the responses, and writes the measurements.

A plan is JSON: `port`, `token`, `bodies` (request bodies, drawn at random), `seconds`, `clients`, `connections` (per
client, at most), `rate` (requests per second of all clients together, sent when due regardless of earlier responses;
null: each client sends its next request when the last one was answered) and `seed`. The output is a list of
`[seconds since it was due, seconds since it was sent, status]`; status 0 is a broken connection.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import deque
from typing import Any

PATIENCE_SECONDS = 20.0  # to wait for unanswered requests when time is up


class Connection(asyncio.Protocol):
    """One request at a time over a connection that stays open."""

    def __init__(self, client: Client):
        self._client = client
        self._heard = b""
        self._due = self._sent = 0.0
        self._busy = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the opened connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at the time `due`."""
        self._busy, self._due, self._sent = True, due, self._client.loop.time()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Collect part of a response; record it when it is complete."""
        self._heard += data
        end = self._heard.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._heard[:end].lower()
        start = head.find(b"content-length:") + 15
        length = int(head[start:].split(b"\r\n", 1)[0])
        if len(self._heard) < end + 4 + length:
            return
        status = int(head[9:12])
        self._heard = self._heard[end + 4 + length :]
        self._note(status)
        if b"connection: close" in head:
            self.transport.close()
        else:
            self._client.free(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Handle a connection closed by the server: a failure if a response was due."""
        if self._busy:
            self._note(0)
        self._client.lost(self)

    def _note(self, status: int) -> None:
        now = self._client.loop.time()
        self._busy = False
        self._client.noted.append((round(now - self._due, 5), round(now - self._sent, 5), status))


class Client:
    """A client that sends its share of the requests over a few connections."""

    def __init__(self, plan: dict[str, Any], number: int, noted: list[tuple[float, float, int]]):
        self.loop = asyncio.get_running_loop()
        self.noted = noted
        self._plan = plan
        self._random = random.Random(f"{plan['seed']}/{number}")
        self._idle: list[Connection] = []
        self._opened = 0
        self._backlog: deque[float] = deque()
        self._ends = self.loop.time() + plan["seconds"]
        head = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {plan['token']}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: "
        bodies = [body.encode() for body in plan["bodies"]]
        self._requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]

    async def run(self) -> None:
        """Send until time is up, then wait for the remaining responses."""
        if self._plan["rate"] is None:
            await self._ask(self.loop.time())
            await asyncio.sleep(self._plan["seconds"])
        else:
            due, rate = self.loop.time(), self._plan["rate"] / self._plan["clients"]
            while (due := due + self._random.expovariate(rate)) < self._ends:
                await asyncio.sleep(max(0.0, due - self.loop.time()))
                await self._ask(due)
        end = self.loop.time() + PATIENCE_SECONDS
        while (self._backlog or len(self._idle) < self._opened) and self.loop.time() < end:
            await asyncio.sleep(0.02)
        for connection in list(self._idle):
            connection.transport.close()
        await asyncio.sleep(0.01)

    async def _ask(self, due: float) -> None:
        if not self._idle and self._opened < self._plan["connections"]:
            self._opened += 1
            try:
                _, made = await self.loop.create_connection(lambda: Connection(self), "127.0.0.1", self._plan["port"])
            except OSError:
                self._opened -= 1
                self.noted.append((0.0, 0.0, 0))
                return
            self._idle.append(made)
        if self._idle:
            self._idle.pop().send(self._random.choice(self._requests), due)
        else:
            self._backlog.append(due)

    def free(self, connection: Connection) -> None:
        """Reuse a connection after a response: send the oldest waiting request or, without a rate, the next one."""
        now = self.loop.time()
        if self._backlog:
            connection.send(self._random.choice(self._requests), self._backlog.popleft())
        elif self._plan["rate"] is None and now < self._ends:
            connection.send(self._random.choice(self._requests), now)
        else:
            self._idle.append(connection)

    def lost(self, connection: Connection) -> None:
        """Remove a closed connection; another one may be opened in its place."""
        self._opened -= 1
        if connection in self._idle:
            self._idle.remove(connection)


async def drive(plan: dict[str, Any]) -> list[tuple[float, float, int]]:
    """Execute a plan."""
    noted: list[tuple[float, float, int]] = []
    await asyncio.gather(*(Client(plan, number, noted).run() for number in range(plan["clients"])))
    return noted


if __name__ == "__main__":
    json.dump(asyncio.run(drive(json.load(sys.stdin))), sys.stdout)
