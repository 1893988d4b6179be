"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]  # fraction of the whole, and the current activity


def silent(done: float, text: str) -> None:
    """Ignore progress."""


def part_of(progress: Progress, place: int, count: int, name: str) -> Progress:
    """Return the callback for part `place` of `count` equal parts; its texts begin with the part's name."""
    return lambda done, text: progress((place + done) / count, f"{name}: {text}")
