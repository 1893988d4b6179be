"""Exceptions that Graftwork raises deliberately.

    GraftworkError
    ├── ConfigError          a flag, a task file or a setting is wrong
    │   └── UnknownName      no part of that name; the nearest one is suggested
    ├── DataError            a data file is wrong
    │   └── InputError       X or y of an estimator is wrong; a ValueError too
    ├── IncompatibleModule   a task module and a backbone, or a file and its hash, do not belong together
    └── StorageError         a file or folder cannot be read or written

A message has the parts what, where, got, expected, do. The command line prints it and exits with status 2.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any


class GraftworkError(Exception):
    """An error the user can fix: `what` happened, `where`, what was `got`, what is `expected`, what to `do`."""

    def __init__(self, what: str, *, where: str = "", got: str = "", expected: str = "", do: str = ""):
        self.what, self.where, self.got, self.expected, self.do = what, where, got, expected, do
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts, not the arguments, which differ by class: process pools pickle the errors of workers."""
        return _restored, (type(self), self.message, vars(self))

    @property
    def message(self) -> str:
        """The full message, one line per part."""
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        parts = (("got", self.got), ("expected", self.expected), ("do", self.do))
        lines += [f"  {name + ':':<10}{text}" for name, text in parts if text]
        return "\n".join(lines)


def _restored(of: type[GraftworkError], message: str, parts: Mapping[str, Any]) -> GraftworkError:
    error = of.__new__(of, message)
    vars(error).update(parts)
    return error


class ConfigError(GraftworkError):
    """A flag, a task file or a setting is wrong."""


class DataError(GraftworkError):
    """A data file is wrong."""


class InputError(DataError, ValueError):
    """X or y of an estimator is wrong. It is a `ValueError` too, as scikit-learn expects."""


class IncompatibleModule(GraftworkError):
    """A task module was made for another backbone, or the content of a file does not match its hash."""


class StorageError(GraftworkError):
    """A file or folder cannot be read or written."""


class UnknownName(ConfigError):
    """An unregistered name; `else_do` is the remedy where no known name is similar."""

    def __init__(self, noun: str, name: str, known: Iterable[str], where: str = "", else_do: str = ""):
        known = list(known)
        near = nearest(name, known)
        super().__init__(
            f"unknown {noun} {name!r}",
            where=where,
            expected=f"one of {', '.join(known)}" if known else "there is none yet",
            do=f"did you mean {near!r}?" if near else else_do,
        )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`; None if the `difflib` ratio of every name is below 0.51."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.51)
    return by_lower[close[0]] if close else None


def clip(text: str, limit: int = 80) -> str:
    """Format a value from data for a message: quoted, escaped and truncated to `limit` characters."""
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}… ({len(text):,} characters)"


def printable(text: str) -> str:
    """Replace all but printable characters, spaces and line ends, so that data can't control a terminal."""
    return "".join(
        char
        if char.isprintable() or char == "\n" or unicodedata.category(char) == "Zs"
        else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )
