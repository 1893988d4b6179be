"""Who named it: what a person asks for may be fetched, a name that stands in a file from elsewhere starts nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASKED: ContextVar[tuple[str, ...] | None] = ContextVar("asked", default=None)


@contextmanager
def kept_only(*asked: str | None) -> Iterator[None]:
    """In this block a hub's name starts no download, unless it is `asked` for: "hf:a/b", "hub:glue:cola"."""
    token = _ASKED.set(tuple(name for name in asked if name is not None))
    try:
        yield
    finally:
        _ASKED.reset(token)


def may_fetch(name: str) -> bool:
    """Whether the hub's repository `name` may be fetched here."""
    asked = _ASKED.get()
    return asked is None or any(name in one.split(":") for one in asked)
