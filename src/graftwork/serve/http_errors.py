"""A request that is not answered, and the response that says why."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from graftwork.errors import GraftworkError


class HttpRefusal(GraftworkError):
    """Carries the HTTP status and, where coming back may help, after how many seconds."""

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
        """The same mistake, told to a client: `where` in the request, never where on this machine."""
        return cls(status, error.what, where=where, got=error.got, expected=error.expected, do=error.do)

    def response(self) -> JSONResponse:
        """`{"error": {"what", "where", "got", "expected", "do"}}`, parts that are empty left out."""
        parts = {name: getattr(self, name) for name in ("what", "where", "got", "expected", "do")}
        content: dict[str, Any] = {"error": {name: text for name, text in parts.items() if text}}
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse(content, self.status, headers)


def busy(what: str, status: int = 429) -> HttpRefusal:
    """More work than the server takes now."""
    return HttpRefusal(status, what, do="send it again after the seconds that Retry-After says", retry_after=1)
