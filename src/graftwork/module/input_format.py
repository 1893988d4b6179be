"""Input formats: parsing of a module's inputs from Python, a client, a command line or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from graftwork.core.example import Example, Input, text_of
from graftwork.core.task import Task
from graftwork.data.readers.columns import column_of
from graftwork.data.readers.embedded_media import text_cell
from graftwork.data.readers.rejects import Bad, Cell
from graftwork.data.readers.table import Table
from graftwork.errors import ConfigError, DataError, clip
from graftwork.units import several

GivenInputs = str | Sequence[str] | Mapping[str, Any]  # a text, a pair, a list of words, or role -> input
Rows = Callable[[], Iterator[Example | Bad]]  # reads its file again at every call


class Form(Protocol):
    """A stateless input format. All examples of a task have the same input roles, which belong to one format."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The input roles of an example."""

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """The sets of names accepted for inputs given by name."""

    @property
    def sample(self) -> str:
        """A sample input in command-line notation."""

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return whether an unnamed input has this format; here a tuple is a pair and a list is words."""

    def example(self, number: int, given: GivenInputs) -> Example:
        """Return the `number`th example (1 is the first). Raises `ConfigError` for input of another format."""

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """Convert command-line texts to inputs. Raises `ConfigError`."""

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Return a reader of the unlabelled rows of a file; `named` (role -> column) names columns.

        Raises `ConfigError` for a role that has no column, `DataError` for a missing column. An unreadable row is
        yielded as `Bad`.
        """


def check_named(named: Mapping[str, str], allowed: Sequence[str], expected: str = "") -> None:
    """Raise `ConfigError` for a column named for a role that a module does not have."""
    for role in named:
        if role not in allowed:
            flags = " and ".join(map(flag, allowed))
            raise ConfigError(f"this module has no {role}", got=flag(role), expected=expected or flags)


def columns_called(table: Table, roles: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """Return the columns of the roles: those `named`, else of the role's name. Raises as `column_of`."""
    expected = " and ".join(roles)
    return [column_of(table, role, named.get(role, role), named.get(role), expected) for role in roles]


def require_texts(number: int, given: Iterable[Any]) -> None:
    """Raise `ConfigError` unless these parts of the `number`th input from Python are texts."""
    for part in given:
        if not isinstance(part, str):
            raise ConfigError(f"input {number} is no text", got=clip(repr(part)), expected="a text: str(…) makes one")


def require_text(given: Cell, where: str) -> Input:
    """Return a cell that is a text or words. Raises `DataError` for an empty one, and for an image or a sound."""
    text = text_cell(given, where)
    if not text_of(text).strip():
        raise DataError("the text is empty", where=where, do="remove the row or fill the text in")
    return text


def two_and_two(texts: Sequence[str], parts: str) -> list[GivenInputs]:
    """Group command-line texts into pairs; `parts` describes them. Raises `ConfigError` for an odd number."""
    if len(texts) % 2:
        raise ConfigError(
            "the texts do not form pairs", got=several(len(texts), "text"), expected=f"an even number: {parts}"
        )
    return list(zip(texts[::2], texts[1::2], strict=True))


def flag(role: str) -> str:
    """Return a role's flag: `text_a` gives `--text-a`."""
    return f"--{role.replace('_', '-')}"
