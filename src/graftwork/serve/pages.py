"""The page at `/`: a fixed list of files that come with the package; no path from a client is ever opened."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGE = {  # path -> (file beside this one, its type)
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_routes() -> list[Route]:
    """A route per file, each read once."""
    folder = files("graftwork.serve") / "page"
    routes = []
    for path, (name, media_type) in PAGE.items():
        content = (folder / name).read_bytes()
        routes.append(Route(path, partial(_answer, content, media_type), methods=["GET"]))
    return routes


async def _answer(content: bytes, media_type: str, request: Request) -> Response:
    return Response(content, headers=HEADERS | {"Content-Type": media_type})
