"""The page at `/`: a fixed list of files in the package; no path given by a client is ever opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
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
    """Return the routes of `/` and, under `/page/`, of the page's other files; each file is read once."""
    return [
        fixed_route(
            "/" if file.name == "index.html" else f"/page/{file.name}",
            file.read_bytes(),
            HEADERS | {"Content-Type": TYPES[Path(file.name).suffix]},
        )
        for file in page_files()
    ]


def page_files() -> list[Traversable]:
    """Return the page's files; the report has the same colours.css and colours.js."""
    colours = (files("graftwork.compare") / name for name in ("colours.css", "colours.js"))
    return [*(files("graftwork.serve") / "page").iterdir(), *colours]


def fixed_route(path: str, content: bytes, headers: Mapping[str, str]) -> Route:
    """Return the route of a content that never changes."""

    async def answer(request: Request) -> Response:
        return Response(content, headers=headers)

    return Route(path, answer, methods=["GET"])
