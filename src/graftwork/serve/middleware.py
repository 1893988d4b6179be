"""Middleware of all requests: token check, log, counts, and error responses without internal details."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graftwork.serve.auth_token import shows_token
from graftwork.serve.http_errors import HttpRefusal, busy
from graftwork.serve.service import Service

BY_PERSON = ("/docs", "/openapi.json", "/metrics")  # also opened in a browser, which asks for a password
PREDICT = "/v1/predict"
DISCARDED = 4  # multiples of the longest body
CLIENT_GONE = 499  # status in the log and the counts only: the client has disconnected
REQUEST_ID = re.compile(rb"[!-~]{1,128}")
TRACE = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")  # W3C Trace Context
HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Gate:
    """The outermost ASGI application: it checks the token, logs and counts, and turns errors into responses."""

    def __init__(self, inner: ASGIApp, service: Service, token: str, routes: list[str]):
        """`routes` are the known paths; all others are counted together."""
        self._inner, self._service, self._token = inner, service, token
        self.routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request; WebSocket and lifespan are disabled in the server."""
        began = time.monotonic()
        record = _origin(scope)
        scope["record"], scope["app"] = record, self
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, record["request_id"])
            await send(message)

        try:
            self._check_token(scope)
            if self._service.batcher.full and scope["path"] == PREDICT and scope["method"] == "POST":
                raise busy("the queue is full")
            await self._inner(scope, receive, sending)
        except asyncio.CancelledError:  # by uvicorn at shutdown: the time for accepted requests is up
            if status:
                raise
            await busy("the server ended before this was answered", 503).response()(scope, receive, sending)
        except Exception as error:
            if status:  # the response has begun: it can only be aborted
                raise
            answer = self._answer_to(error, scope)
            if answer is not None and not await self._rest_is_read(scope, receive, answer.status_code):
                answer.headers["Connection"] = "close"
            if answer is None:
                status = CLIENT_GONE
            else:
                await answer(scope, receive, sending)
        finally:
            self._note(scope, status, time.monotonic() - began, record)

    def _check_token(self, scope: Scope) -> None:
        path = scope["path"]
        person = path in BY_PERSON
        if not (person or path.startswith("/v1/")):
            return
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        if not shows_token(shown, self._token, password=person):
            raise HttpRefusal(
                401,
                "the token is wrong" if shown else "a token is needed",
                where="Authorization",
                expected="Bearer TOKEN",
                do="take the token that graft serve printed when it started, or that in the file of --token-file",
            )

    def _answer_to(self, error: Exception, scope: Scope) -> Response | None:
        """Return the response to an error; None when the client has disconnected."""
        if isinstance(error, ClientDisconnect):
            return None
        if isinstance(error, HTTPException):
            error = _refused(error, scope)
        if isinstance(error, HttpRefusal):
            answer = error.response()
            if error.status == 401:
                person = scope["path"] in BY_PERSON
                answer.headers["WWW-Authenticate"] = f'{"Basic" if person else "Bearer"} realm="graftwork"'
            if error.status == 405 and error.expected:
                answer.headers["Allow"] = error.expected
            return answer
        return self._service.mistake(error, scope).response()

    async def _rest_is_read(self, scope: Scope, receive: Receive, status: int) -> bool:
        """Read and discard the rest of a refused body, within limits: a client cut off while sending reads no response.

        False if there may be more of it: the connection can't be reused.
        """
        if scope["method"] in ("GET", "HEAD") or "read" in scope:
            return True
        if status == 408 or any(name == b"expect" for name, _ in scope["headers"]):
            return False
        limits, size = self._service.limits, 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.discard_seconds):
                while size <= DISCARDED * limits.body_bytes:
                    message = await receive()
                    size += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return True
        return False

    def _add_headers(self, message: Message, request_id: str) -> None:
        present = {name for name, _ in message["headers"]}
        message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in present)]
        message["headers"].append((b"x-request-id", request_id.encode()))
        if self._service.draining:
            message["headers"].append((b"connection", b"close"))

    def _note(self, scope: Scope, status: int, seconds: float, record: dict[str, Any]) -> None:
        route = scope["path"] if scope["path"] in self.routes else "other"
        if re.fullmatch(r"/v1/tasks/[^/]+", scope["path"]):
            route = "/v1/tasks/{name}"
        self._service.measures.request(route, status, seconds, scope.get("asked", {}))
        line = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 2)}
        self._service.records.line(line | record)


def _origin(scope: Scope) -> dict[str, Any]:
    """Return the log fields about a request's origin: its client, its id (the client's or a new one) and its trace."""
    given = dict(scope["headers"])
    request_id, trace = given.get(b"x-request-id", b""), given.get(b"traceparent", b"")
    return {
        "client": scope["client"][0] if scope["client"] else "",
        "request_id": request_id.decode() if REQUEST_ID.fullmatch(request_id) else secrets.token_hex(16),
    } | ({"traceparent": trace.decode()} if TRACE.fullmatch(trace) else {})


def _refused(error: HTTPException, scope: Scope) -> HttpRefusal:
    """Convert an error of the router: an unknown path or a wrong method."""
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return HttpRefusal(405, "the method is not allowed for this path", got=scope["method"], expected=allowed)
    return HttpRefusal(error.status_code, "no such path", do="GET /docs lists them")
