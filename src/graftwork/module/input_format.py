"""A form: how inputs of some roles are given, in Python, by a client, on a command line and in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from graftwork.core.example import Example, Input, text_of
from graftwork.core.task import Task
from graftwork.data.readers.rejects import Bad
from graftwork.data.readers.table import DataRow, Table
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.units import several

GivenInputs = str | Sequence[str] | Mapping[str, Any]  # a text, a pair or the words of one, or role -> input
Rows = Callable[[], Iterator[Example | Bad]]  # reads its file anew at every call


class Form(Protocol):
    """Stateless. Every example of a task has inputs of the same roles, and those are of one form."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The inputs of an example."""

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """The sets of names under which it may be given by name."""

    @property
    def sample(self) -> str:
        """An example as it is written on a command line."""

    def takes(self, given: str | Sequence[str]) -> bool:
        """Whether this, given without names, is of this form: here a tuple is a pair and a list is words."""

    def example(self, number: int, given: GivenInputs) -> Example:
        """The `number`th example (1 is the first). Raises `ConfigError` for what is not of this form."""

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """What these texts of a command line are. Raises `ConfigError`."""

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """The rows of a file of it, without answers; `named` (role -> column) names columns.

        Raises `ConfigError` for a role that no column can be named for, `DataError` for a missing column. In place of
        a row that can't be read comes what is wrong with it.
        """


def each(found: Iterable[DataRow | Bad], path: Path, made: Callable[[DataRow], Example]) -> Iterator[Example | Bad]:
    """An example of every row of `path`; what is wrong with one where `made` raises `DataError`."""
    for row in found:
        if isinstance(row, Bad):
            yield row
            continue
        try:
            yield made(row)
        except DataError as error:
            yield Bad(path, row.line, error, row.last)


def check_named(named: Mapping[str, str], allowed: Sequence[str], expected: str = "") -> None:
    """Raise `ConfigError` for a column that is named for a role that a module does not have."""
    for role in named:
        if role not in allowed:
            flags = " and ".join(map(flag, allowed))
            raise ConfigError(f"this module has no {role}", got=flag(role), expected=expected or flags)


def columns_called(table: Table, roles: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """The columns that are `named`, else called like the roles. Raises `DataError` for one that is not there."""
    for role in roles:
        column = named.get(role, role)
        if column not in table.header:
            near = nearest(column, table.header)
            raise DataError(
                f"no column {column!r}",
                where=f"{table.path}:1",
                got=f"columns: {', '.join(table.header)}",
                expected=f"columns called {' and '.join(roles)}" if len(roles) > 1 else f"a column called {role}",
                do=f"did you mean {flag(role)} {near}?" if near else f"name it: {flag(role)} COLUMN",
            )
    return [named.get(role, role) for role in roles]


def require_text(given: Input, where: str) -> None:
    """Raise `DataError` where there is nothing to read."""
    if not text_of(given).strip():
        raise DataError("the text is empty", where=where, do="remove the row or fill the text in")


def two_and_two(texts: Sequence[str], parts: str) -> list[GivenInputs]:
    """A pair of every two texts of a command line; `parts` says what they are. Raises `ConfigError` for an odd one."""
    if len(texts) % 2:
        raise ConfigError(
            "the texts don't make whole pairs",
            got=several(len(texts), "text"),
            expected=f"an even number: {parts}",
        )
    return list(zip(texts[::2], texts[1::2], strict=True))


def flag(role: str) -> str:
    """`text_a` is `--text-a`."""
    return f"--{role.replace('_', '-')}"
