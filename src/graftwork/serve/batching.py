"""Batching across requests: requests queue while a batch is computed and form the next one, in a single thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from graftwork.core.example import Example
from graftwork.core.writing import Tell
from graftwork.serve.http_errors import busy
from graftwork.serve.request_parsing import Piece
from graftwork.serve.server_limits import ServerLimits

Rows = list[tuple[str, Example]]
Answers = list[dict[str, Any]]


@dataclass(eq=False)
class Ticket:
    """One request's place in the queue. Everything but `result` is guarded by the queue's lock."""

    pieces: Sequence[Piece]
    result: asyncio.Future[Answers]  # in the order of `pieces`
    weight: int  # tokens that it counts for while queued
    arrived: float
    tell: Callable[[str], None] | None = None  # called in the batching thread with the text of the only piece so far
    started: float | None = None  # when its first rows entered a batch
    taken: int = 0
    answers: Answers = field(default_factory=list)

    @property
    def waited(self) -> float:
        """Seconds until its first rows entered a batch."""
        return (self.started or time.monotonic()) - self.arrived


class Batcher:
    """A bounded queue, first come first served, except that long requests share batches with later ones.

    `compute` predicts rows of any tasks, in order. It is called in one thread only. Its second argument is a function
    to call with a row's text while it is written, or None if no request of the batch wants that. `observe` is called
    after each batch with its rows, tokens and seconds.
    """

    def __init__(
        self,
        compute: Callable[[Rows, Tell | None], Answers],
        limits: ServerLimits,
        observe: Callable[[int, int, float], None],
    ):
        self._compute, self._limits, self._observe = compute, limits, observe
        self._queue: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._weight = 0
        self._stopped = False
        self._ended = float("-inf")  # when the last batch ended
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Answer the queue, then end the thread; if that takes longer than `seconds`, return and leave it running."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(timeout=seconds)

    @property
    def alive(self) -> bool:
        """True if the thread is running."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> tuple[int, int]:
        """The numbers of requests and of tokens in the queue."""
        return len(self._queue), self._weight

    @property
    def full(self) -> bool:
        """True if `put` would refuse; checked before a body is read."""
        return self._weight >= self._limits.queue_tokens

    def put(self, pieces: Sequence[Piece], tell: Callable[[str], None] | None = None) -> Ticket:
        """Queue a request's rows; called in the event loop. Raises `HttpRefusal`, 429, when the queue is full.

        `tell` is called in the batching thread with the text of a single row while it is written.
        """
        tokens = sum(piece.tokens for piece in pieces)
        result: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        ticket = Ticket(pieces, result, min(tokens, self._limits.share), time.monotonic(), tell)
        with self._changed:
            if self.full:
                raise busy("the queue is full")
            self._weight += ticket.weight
            self._queue.append(ticket)
            self._changed.notify()
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """Remove an abandoned ticket from the queue; a batch in progress is interrupted only as `_told_by` says."""
        with self._changed:
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._weight -= ticket.weight

    def _work(self) -> None:
        while parts := self._collect():
            began = time.monotonic()
            finished = self._run(parts)
            self._ended = time.monotonic()
            rows = [piece for _, pieces in parts for piece in pieces]
            self._observe(len(rows), sum(piece.tokens for piece in rows), self._ended - began)
            if finished:
                with contextlib.suppress(RuntimeError):  # the event loop has ended: no client is waiting
                    finished[0][0].result.get_loop().call_soon_threadsafe(_hand_over, finished)

    def _collect(self) -> list[tuple[Ticket, list[Piece]]]:
        """Wait for and return the next batch; empty when the queue was stopped and is empty."""
        with self._changed:
            while True:
                while not self._queue:
                    if self._stopped:
                        return []
                    self._changed.wait()
                # An idle server starts at once; right after a batch, its clients are likely to send again.
                left = self._ended + self._limits.linger_seconds - time.monotonic()
                if left <= 0 or self._weight >= self._limits.batch_tokens or self._stopped:
                    return self._take(time.monotonic())
                self._changed.wait(left)

    def _take(self, now: float) -> list[tuple[Ticket, list[Piece]]]:
        """Take rows up to the tokens of a batch, from each ticket in turn at most its share; at least one row."""
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
            else:  # goes to the back of the queue, unless it got nothing
                (self._queue.append if rows else self._queue.appendleft)(ticket)
        return parts

    def _share(self, ticket: Ticket, room: int, *, must: bool) -> list[Piece]:
        """Take the next rows of a ticket that fit into `room` and its share; if `must`, at least one."""
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
        """Compute a batch; return finished tickets with their error, if any. If it fails, each request runs alone."""
        try:
            asked = [(piece.task, piece.example) for _, rows in parts for piece in rows]
            answers = iter(self._compute(asked, _told_by([ticket for ticket, rows in parts for _ in rows])))
            for ticket, rows in parts:
                ticket.answers += [next(answers) for _ in rows]
        except Exception as error:
            if len(parts) == 1:
                self.drop(parts[0][0])
                return [(parts[0][0], error)]
            return [finished for part in parts for finished in self._run([part])]
        return [(ticket, None) for ticket, _ in parts if len(ticket.answers) == len(ticket.pieces)]


def _told_by(owners: Sequence[Ticket]) -> Tell | None:
    """Return a function that passes a row's text to the request that owns the row; None if no request wants it.

    It raises `CancelledError`, which ends the batch, as soon as no request waits for any row of it.
    """
    if all(ticket.tell is None for ticket in owners):
        return None

    def tell(row: int, text: str) -> None:
        if all(ticket.result.done() for ticket in owners):
            raise CancelledError
        listener = owners[row].tell
        if listener is not None:
            listener(text)

    return tell


def _hand_over(finished: list[tuple[Ticket, Exception | None]]) -> None:
    """Set the results of finished tickets; called in the event loop."""
    for ticket, error in finished:
        if ticket.result.done():
            continue
        if error is None:
            ticket.result.set_result(ticket.answers)
        else:
            ticket.result.set_exception(error)
