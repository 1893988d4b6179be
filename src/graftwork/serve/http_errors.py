"""Errors of refused requests, and their HTTP responses."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from graftwork.errors import GraftworkError


class HttpRefusal(GraftworkError):
    """An error with an HTTP status and, if a retry may help, the seconds to wait before it."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        where: str = "",
        got: str = "",
        expected: str = "",
        do: str = "",
        retry_after: int | None = None,
    ):
        super().__init__(what, where=where, got=got, expected=expected, do=do)
        self.status, self.retry_after = status, retry_after

    @classmethod
    def of(cls, error: GraftworkError, status: int, where: str) -> HttpRefusal:
        """Convert an error for a client: `where` is a place in the request, never a path on this machine."""
        return cls(status, error.what, where=where, got=error.got, expected=error.expected, do=error.do)

    @property
    def content(self) -> dict[str, Any]:
        """`{"error": {"what", "where", "got", "expected", "do"}}` without empty parts."""
        parts = {name: getattr(self, name) for name in ("what", "where", "got", "expected", "do")}
        return {"error": {name: text for name, text in parts.items() if text}}

    def response(self) -> JSONResponse:
        """Return the response with this content."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse(self.content, self.status, headers)


def busy(what: str, status: int = 429) -> HttpRefusal:
    """Return the refusal of a request for which the server has no capacity now."""
    return HttpRefusal(status, what, do="send it again after the number of seconds in Retry-After", retry_after=1)
