"""The one way in which a contract fails."""

from __future__ import annotations


def require(condition: bool, message: str) -> None:
    """Raise `AssertionError` unless `condition`: an `assert` that -O does not remove, for these are tests."""
    if not condition:
        raise AssertionError(message)
