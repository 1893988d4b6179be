"""Progress: how far something is, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]  # fraction of the whole, and what goes on


def silent(done: float, text: str) -> None:
    """For nobody."""
