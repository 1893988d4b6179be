"""The queue across requests: what came in while a batch was computed is the next one, and one thread computes them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graftwork.core.example import Example
from graftwork.serve.http_errors import busy
from graftwork.serve.request_parsing import Piece
from graftwork.serve.server_limits import ServerLimits

Rows = list[tuple[str, Example]]
Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class ServedBatch:
    """What is told of a batch when it is done."""

    rows: int
    tokens: int
    seconds: float


@dataclass(eq=False)
class Ticket:
    """One request's place in the queue. Everything but `result` is guarded by the queue's lock."""

    pieces: Sequence[Piece]
    result: asyncio.Future[Answers]  # in the order of `pieces`
    weight: int  # tokens that it counts for while it waits
    arrived: float
    started: float | None = None  # when its first rows were taken into a batch
    taken: int = 0
    answers: Answers = field(default_factory=list)

    @property
    def waited(self) -> float:
        """Seconds until its first rows were computed."""
        return (self.started or time.monotonic()) - self.arrived


class Batcher:
    """Bounded, first come first served but for long requests, which share a batch with those behind them.

    `compute` answers rows of any tasks, in order; it is called in one thread only. `observe` is told of every batch.
    """

    def __init__(
        self, compute: Callable[[Rows], Answers], limits: ServerLimits, observe: Callable[[ServedBatch], None]
    ):
        self._compute, self._limits, self._observe = compute, limits, observe
        self._queue: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._weight = 0
        self._stopped = False
        self._running = False
        self._ended = float("-inf")  # when the last batch was done
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Answer what is in the queue, then end the thread; one that takes longer is left to the end of the process."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=seconds)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether a batch is being computed."""
        return self._running

    @property
    def waiting(self) -> tuple[int, int]:
        """Requests and tokens in the queue."""
        return len(self._queue), self._weight

    @property
    def full(self) -> bool:
        """Whether `put` would refuse, which is worth knowing before a body is read."""
        return self._weight >= self._limits.queue_tokens

    def put(self, pieces: Sequence[Piece]) -> Ticket:
        """Queue a request's rows; called in the event loop. Raises `Refused`, 429, when the queue is full."""
        tokens = sum(piece.tokens for piece in pieces)
        result: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        ticket = Ticket(pieces, result, min(tokens, self._limits.share), time.monotonic())
        with self._changed:
            if self.full:
                raise busy("the queue is full")
            self._weight += ticket.weight
            self._queue.append(ticket)
            self._changed.notify()
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """Nobody waits for this one any more: no work is done for it that has not begun."""
        with self._changed:
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._weight -= ticket.weight

    def _work(self) -> None:
        while parts := self._collect():
            self._running, began = True, time.monotonic()
            finished = self._run(parts)
            self._running, self._ended = False, time.monotonic()
            rows = [piece for _, pieces in parts for piece in pieces]
            self._observe(ServedBatch(len(rows), sum(piece.tokens for piece in rows), self._ended - began))
            if finished:
                with contextlib.suppress(RuntimeError):  # an event loop that has ended: nobody waits any more
                    finished[0][0].result.get_loop().call_soon_threadsafe(_hand_over, finished)

    def _collect(self) -> list[tuple[Ticket, list[Piece]]]:
        """The next batch, or nothing when the server stops and all is answered."""
        with self._changed:
            while True:
                while not self._queue:
                    if self._stopped:
                        return []
                    self._changed.wait()
                # A machine that was idle starts at once; after a batch, those it answered are about to ask again.
                left = self._ended + self._limits.linger_seconds - time.monotonic()
                if left <= 0 or self._weight >= self._limits.batch_tokens or self._stopped:
                    return self._take(time.monotonic())
                self._changed.wait(left)

    def _take(self, now: float) -> list[tuple[Ticket, list[Piece]]]:
        """Rows up to the tokens of a batch, of each ticket in turn at most its share; at least one row."""
        parts: list[tuple[Ticket, list[Piece]]] = []
        room = self._limits.batch_tokens
        while self._queue and room > 0:
            ticket = self._queue.popleft()
            rows = self._share(ticket, room, must=not parts)
            room = room - sum(piece.tokens for piece in rows) if rows else 0
            if rows:
                ticket.started = ticket.started or now
                parts.append((ticket, rows))
            if ticket.taken == len(ticket.pieces):
                self._weight -= ticket.weight
            else:  # those behind it come first now, unless it got nothing
                (self._queue.append if rows else self._queue.appendleft)(ticket)
        return parts

    def _share(self, ticket: Ticket, room: int, *, must: bool) -> list[Piece]:
        """The next rows of a ticket that fit into `room` and into its share; one in any case where it `must`."""
        room = min(room, self._limits.share)
        rows: list[Piece] = []
        for piece in ticket.pieces[ticket.taken :]:
            if piece.tokens > room and not (must and not rows):
                break
            rows.append(piece)
            room -= piece.tokens
        ticket.taken += len(rows)
        return rows

    def _run(self, parts: list[tuple[Ticket, list[Piece]]]) -> list[tuple[Ticket, Exception | None]]:
        """Compute a batch; what comes of the requests that are done with. Where it fails, each request runs alone."""
        try:
            answers = iter(self._compute([(piece.task, piece.example) for _, rows in parts for piece in rows]))
            for ticket, rows in parts:
                ticket.answers += [next(answers) for _ in rows]
        except Exception as error:
            if len(parts) == 1:
                self.drop(parts[0][0])
                return [(parts[0][0], error)]
            return [finished for part in parts for finished in self._run([part])]
        return [(ticket, None) for ticket, _ in parts if len(ticket.answers) == len(ticket.pieces)]


def _hand_over(finished: list[tuple[Ticket, Exception | None]]) -> None:
    """In the event loop: wake those who wait."""
    for ticket, error in finished:
        if ticket.result.done():
            continue
        if error is None:
            ticket.result.set_result(ticket.answers)
        else:
            ticket.result.set_exception(error)
