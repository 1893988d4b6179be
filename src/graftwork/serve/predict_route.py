"""`POST /v1/predict`: read, check, queue, wait, answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar

import pydantic_core
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from graftwork.errors import ConfigError, GraftworkError, UnknownName
from graftwork.serve.batching import Answers, Ticket
from graftwork.serve.event_stream import MEDIA, UNBUFFERED, TextListener, event, wants_events
from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.request_parsing import Piece, RequestRow, read_request
from graftwork.serve.service import Service, without_places

T = TypeVar("T")
LONG_BODY = 8_192  # bytes; a longer body is parsed in a thread, so as not to block the event loop
MANY_ANSWERS = 64


async def predict(service: Service, request: Request) -> Response:
    """Answer a request: with the predictions of its rows as JSON, in order, or with that of a single row as events.

    Raises `HttpRefusal`, and `ClientDisconnect` when the client has gone.
    """
    body = await read_body(service, request)
    deadline = time.monotonic() + service.limits.seconds
    catalogue = service.catalogue
    rows = await _aside(len(body) > LONG_BODY, lambda: read_request(body, catalogue, service.limits))
    record = request.scope["record"]
    record["rows"] = len(rows)
    if service.log_texts:
        record["inputs"] = [row.given for row in rows]
    pieces = [piece for row in rows for piece in row.pieces]
    request.scope["asked"] = Counter(piece.task for piece in pieces)
    if wants_events(request.headers.get("accept", "")):
        return await _as_events(service, request, rows, deadline)
    ticket = service.batcher.put(pieces)
    answers = await _answers(service, request, ticket, deadline)
    _note_wait(service, request, ticket)
    cut = await _cut(service, rows)
    content = await _aside(len(answers) > MANY_ANSWERS, lambda: to_json({"rows": _rows(rows, answers, cut)}))
    return Response(content, media_type="application/json")


async def read_body(service: Service, request: Request) -> bytes:
    """Read the body. Raises `HttpRefusal`: 415 unless uncompressed JSON, 413 if too long, 408 if too slow."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpRefusal(
            415, "the content type is not supported", where="Content-Type", got=kind, expected="application/json"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpRefusal(415, "a compressed body is not supported", where="Content-Encoding", expected="identity")
    limit = service.limits.body_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > limit:
        raise _too_long(limit)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(service.limits.body_seconds):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise _too_long(limit)
    except TimeoutError:
        seconds = service.limits.body_seconds
        raise HttpRefusal(
            408, "the body did not arrive in time", where="body", expected=f"within {seconds:g} s"
        ) from None
    request.scope["read"] = True
    return b"".join(chunks)


def _too_long(limit: int) -> HttpRefusal:
    return HttpRefusal(413, "the body is too long", where="body", expected=f"at most {limit:,} bytes")


async def _answers(service: Service, request: Request, ticket: Ticket, deadline: float) -> Answers:
    """Wait for the queue's answers, until the deadline or until the client disconnects."""
    gone = asyncio.ensure_future(request.receive())
    try:
        left = max(0.0, deadline - time.monotonic())
        first: list[asyncio.Future[Any]] = [ticket.result, gone]
        await asyncio.wait(first, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if not ticket.result.done():
            service.batcher.drop(ticket)
            if gone.done():
                raise ClientDisconnect
            raise _too_late(service)
        with _as_it_is_now():
            return ticket.result.result()
    finally:
        gone.cancel()
        ticket.result.cancel()


@contextlib.contextmanager
def _as_it_is_now() -> Iterator[None]:
    """Turn the bank's errors about a task that changed while the request waited into refusals for the client."""
    try:
        yield
    except UnknownName as error:  # it was removed from the bank while the request waited
        raise HttpRefusal.of(error, 404, "task") from None
    except ConfigError:  # its new version takes other inputs
        raise busy("the task was replaced while the request waited", 503) from None
    except GraftworkError as error:  # changed on disk and can't be opened, or out of memory for a single row
        raise HttpRefusal(503, without_places(error.message), where="task", retry_after=60) from None


async def _cut(service: Service, rows: Sequence[RequestRow]) -> list[bool]:
    """Return, per row, whether a task truncated it. Only rows that may be too long are tokenised."""
    asked = [(i, (task, row.given)) for i, row in enumerate(rows) for task in row.doubtful]
    if not asked:
        return [False] * len(rows)
    with _as_it_is_now():
        found = await run_in_threadpool(service.bank.cut, [row for _, row in asked])
    cut = {i for (i, _), was_cut in zip(asked, found, strict=True) if was_cut}
    return [i in cut for i in range(len(rows))]


def _rows(rows: Sequence[RequestRow], answers: Answers, cut: list[bool]) -> list[dict[str, Any]]:
    coming = iter(answers)
    return [
        {"answers": {piece.task: _withheld_if_unsure(piece, next(coming)) for piece in row.pieces}, "cut": was_cut}
        for row, was_cut in zip(rows, cut, strict=True)
    ]


def _withheld_if_unsure(piece: Piece, answer: dict[str, Any]) -> dict[str, Any]:
    """Return a prediction, withheld if it is below its row's threshold. Raises `HttpRefusal` without a probability."""
    if piece.threshold is None:
        return answer
    try:
        return piece.threshold.withheld(answer, piece.task)
    except ConfigError as error:
        raise HttpRefusal.of(error, 422, "body") from None


async def _as_events(service: Service, request: Request, rows: Sequence[RequestRow], deadline: float) -> Response:
    """Answer one row of one task as events. An error before the first event is answered by its HTTP status."""
    pieces = [piece for row in rows for piece in row.pieces]
    if len(pieces) > 1:
        raise HttpRefusal(
            406,
            "events carry one answer",
            where="Accept",
            got=f"{len(pieces)} answers",
            expected="one row and one task",
            do="ask for application/json, or send a request for each answer",
        )
    events = _events(service, request, rows, deadline)
    first, gone = asyncio.ensure_future(anext(events)), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([first, gone], return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            raise ClientDisconnect
        begun = first.result()
    finally:
        first.cancel()
        gone.cancel()
    return StreamingResponse(_from(begun, events), media_type=MEDIA, headers=UNBUFFERED)


async def _from(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for one in others:
        yield one


async def _events(
    service: Service, request: Request, rows: Sequence[RequestRow], deadline: float
) -> AsyncIterator[bytes]:
    """Yield an event for each new piece of the text, then one with the row's answer, or with an error.

    Raises `HttpRefusal` before the first event.
    """
    listener = TextListener()
    ticket = service.batcher.put(rows[0].pieces, listener.tell)
    ticket.result.add_done_callback(listener.end)
    try:
        async for piece in listener.pieces(deadline):
            yield event("text", to_json({"text": piece}))
        with _as_it_is_now():
            answers = ticket.result.result()
        _note_wait(service, request, ticket)
        cut = await _cut(service, rows)
        if rest := listener.piece(answers[0].get("text", "")):
            yield event("text", to_json({"text": rest}))
        yield event("answer", to_json(_rows(rows, answers, cut)[0]))
    except Exception as error:
        refused = _too_late(service) if isinstance(error, TimeoutError) else error
        if not listener.heard:
            raise refused from None
        refused = refused if isinstance(refused, HttpRefusal) else service.mistake(error, request.scope)
        request.scope["record"]["why"] = refused.what
        yield event("error", to_json(refused.content))
    except asyncio.CancelledError:
        request.scope["record"]["why"] = "the client went, or the server ended, before the answer"
        raise
    finally:
        service.batcher.drop(ticket)
        ticket.result.cancel()


def _note_wait(service: Service, request: Request, ticket: Ticket) -> None:
    service.measures.queue_seconds.observe(ticket.waited)
    request.scope["record"]["queue_ms"] = round(ticket.waited * 1000, 2)


def _too_late(service: Service) -> HttpRefusal:
    return busy(f"no answer within {service.limits.seconds:g} s; the request was dropped", 503)


def to_json(value: Any) -> bytes:
    """Encode as JSON in UTF-8; NaN and infinities become null."""
    return pydantic_core.to_json(value, inf_nan_mode="null")


async def _aside(heavy: bool, work: Callable[[], T]) -> T:
    """Run `work`, in a thread if it is heavy, so that the event loop is not blocked."""
    return await run_in_threadpool(work) if heavy else work()
