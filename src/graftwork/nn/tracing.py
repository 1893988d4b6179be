"""Tracing of a network into a graph that other libraries run: plain operators, no branch on values of inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACED: ContextVar[bool] = ContextVar("traced", default=False)


def being_traced() -> bool:
    """Return whether a network is being traced in this thread, so that code must not branch on values of tensors."""
    return _TRACED.get()


@contextmanager
def tracing_context() -> Iterator[None]:
    """Let `being_traced` return True in this context."""
    token = _TRACED.set(True)
    try:
        yield
    finally:
        _TRACED.reset(token)
