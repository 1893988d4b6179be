"""The download policy: names requested by the user may be fetched, names in untrusted files may not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASKED: ContextVar[tuple[str, ...] | None] = ContextVar("asked", default=None)


@contextmanager
def kept_only(*asked: str | None) -> Iterator[None]:
    """Allow no download in this block except of the `asked` names: "hf:a/b", "hub:glue:cola"."""
    token = _ASKED.set(tuple(name for name in asked if name is not None))
    try:
        yield
    finally:
        _ASKED.reset(token)


def may_fetch(name: str) -> bool:
    """Return whether the hub's repository `name` may be downloaded here."""
    asked = _ASKED.get()
    return asked is None or any(name in one.split(":") for one in asked)
