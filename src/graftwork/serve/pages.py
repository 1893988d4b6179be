"""The page at `/`: a fixed list of files in the package; no path given by a client is ever opened."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_routes() -> list[Route]:
    """Return the routes of `/` and, under `/page/`, of every file beside it; each file is read once."""
    routes = []
    for file in (files("graftwork.serve") / "page").iterdir():
        path = "/" if file.name == "index.html" else f"/page/{file.name}"
        answer = partial(_answer, file.read_bytes(), TYPES[Path(file.name).suffix])
        routes.append(Route(path, answer, methods=["GET"]))
    return routes


async def _answer(content: bytes, media_type: str, request: Request) -> Response:
    return Response(content, headers=HEADERS | {"Content-Type": media_type})
