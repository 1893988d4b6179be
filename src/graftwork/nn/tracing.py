"""Tracing of a network into a graph that other libraries run: plain operators only, and no branch on what is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACED: ContextVar[bool] = ContextVar("traced", default=False)


def being_traced() -> bool:
    """Return whether a network is being traced in this thread, so that no value of a tensor may be looked at."""
    return _TRACED.get()


@contextmanager
def tracing_context() -> Iterator[None]:
    """Let `being_traced` be true in this context."""
    token = _TRACED.set(True)
    try:
        yield
    finally:
        _TRACED.reset(token)
