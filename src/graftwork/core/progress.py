"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]  # fraction of the whole, and the current activity


def silent(done: float, text: str) -> None:
    """Ignore progress."""
