"""Division of a stream into lists of about equal size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def gathered(items: Iterable[T], size: Callable[[T], int], most: int, count: int = sys.maxsize) -> Iterator[list[T]]:
    """Yield lists of adjacent items, each ended by the item that brings it to `most` in all, or to `count` items."""
    held: list[T] = []
    total = 0
    for item in items:
        held.append(item)
        total += size(item)
        if total >= most or len(held) >= count:
            yield held
            held, total = [], 0
    if held:
        yield held
