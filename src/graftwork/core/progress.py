"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]  # fraction of the whole, and the current activity


def silent(done: float, text: str) -> None:
    """Ignore progress."""


def part_of(progress: Progress, place: int, count: int, name: str) -> Progress:
    """Return the progress of part `place` of `count` equal parts; what it tells begins with the part's name."""
    return lambda done, text: progress((place + done) / count, f"{name}: {text}")
