"""Input format: a text, or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.data.readers.rejects import DataRow, mapped
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError
from graftwork.module.input_format import (
    GivenInputs,
    Rows,
    check_named,
    columns_called,
    require_text,
    require_texts,
    two_and_two,
)


@dataclass(frozen=True)
class TextFormat:
    """The format of one text per role."""

    roles: tuple[str, ...]

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """The names of the roles."""
        return (frozenset(self.roles),)

    @property
    def sample(self) -> str:
        """One or two sample texts."""
        return " ".join(['"a text"', '"another"'][: len(self.roles)])

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return whether `given` is a text, or a tuple of two for a pair."""
        if len(self.roles) == 1 or isinstance(given, str):
            return len(self.roles) == 1 and isinstance(given, str)
        return isinstance(given, tuple) and len(given) == 2 and all(isinstance(text, str) for text in given)

    def example(self, number: int, given: GivenInputs) -> Example:
        """Build from texts by name or in the order of the roles."""
        if isinstance(given, str):
            given = (given,)
        if not isinstance(given, Mapping):
            if len(given) != len(self.roles):
                expected = f"{len(self.roles)} ({', '.join(self.roles)})"
                raise ConfigError("wrong number of texts", got=str(len(given)), expected=expected)
            given = dict(zip(self.roles, given, strict=True))
        if set(given) != set(self.roles):
            raise ConfigError("wrong inputs", got=", ".join(given), expected=", ".join(self.roles))
        require_texts(number, given.values())
        if not all(value.strip() for value in given.values()):
            raise ConfigError(f"text {number} is empty", do="write a text between the quotes")
        return Example(f"input/{number}", given)

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """Return single texts, or pairs of two consecutive ones."""
        if len(self.roles) == 1:
            return list(texts)
        return two_and_two(texts, "the first and the second text of every pair")

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read a column per text; `sentence` is accepted for `text`."""
        check_named(named, self.roles)
        table = open_table(source, spans=False)
        one_sentence = self.roles == ("text",) and "text" not in table.header and "sentence" in table.header
        columns = ["sentence"] if one_sentence and not named else columns_called(table, self.roles, named)

        def made(row: DataRow) -> Example:
            for cell in row.cells:
                require_text(cell, f"{table.path}:{row.line}")
            return Example(f"line/{row.line}", dict(zip(self.roles, row.cells, strict=True)))

        return lambda: mapped(table.readings(columns), table.path, made)


TEXT, PAIR = TextFormat(("text",)), TextFormat(("text_a", "text_b"))
