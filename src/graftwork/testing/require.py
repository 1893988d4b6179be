"""The assertion used by all contract checks."""

from __future__ import annotations


def require(condition: bool, message: str) -> None:
    """Raise `AssertionError` unless `condition` holds; unlike `assert`, this also works under `python -O`."""
    if not condition:
        raise AssertionError(message)
