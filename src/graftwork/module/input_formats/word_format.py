"""Input format: the words of a text, or a text that is split into words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from graftwork.core.example import Example
from graftwork.core.task import Task
from graftwork.data.readers.rejects import DataRow, mapped
from graftwork.data.readers.table import Table, open_table
from graftwork.data.readers.word_cells import check_words
from graftwork.errors import ConfigError, DataError
from graftwork.module.input_format import GivenInputs, Rows, check_named, flag, require_text, require_texts
from graftwork.targets.words import example_of

COLUMNS = ("tokens", "words", "text", "sentence")


class WordFormat:
    """The format of a list of words per example."""

    roles = ("words",)
    names = (frozenset({"words"}), frozenset({"text"}))
    sample = '"a text"'

    def takes(self, given: str | Sequence[str]) -> bool:
        """Return whether `given` is a text or a list."""
        return isinstance(given, str | list)

    def example(self, number: int, given: GivenInputs) -> Example:
        """Build from words or a text, by name or not."""
        if isinstance(given, Mapping):
            if len(given) != 1 or not given.keys() <= {"text", "words"}:
                raise ConfigError("wrong inputs", got=", ".join(given), expected="words, or text")
            given = next(iter(given.values()))
        given = given if isinstance(given, str) else tuple(given if isinstance(given, Iterable) else [given])
        require_texts(number, given)
        example = example_of(f"input/{number}", given)
        words = example.inputs["words"]
        if not words or not all(word.strip() for word in words):
            raise ConfigError(
                f"text {number} {'has an empty word' if words else 'is empty'}", do="leave empty words out"
            )
        return example

    def arguments(self, texts: Sequence[str]) -> list[GivenInputs]:
        """Return the texts."""
        return list(texts)

    def rows(self, source: Path, task: Task, named: Mapping[str, str]) -> Rows:
        """Read a column of lists of words, or of texts."""
        check_named(named, ("text",))
        table = open_table(source)
        column = _column(table, named.get("text"))

        def made(row: DataRow) -> Example:
            where = f"{table.path}:{row.line}"
            example = example_of(f"line/{row.line}", require_text(row.cells[0], where))
            check_words(example.inputs["words"], where)
            return example

        found = partial(table.readings, [column], words=column if table.holds_lists(column) else None)
        return lambda: mapped(found(), table.path, made)


def _column(table: Table, named: str | None) -> str:
    for column in [named] if named is not None else COLUMNS:
        if column in table.header:
            return column
    raise DataError(
        f"no column {named!r}" if named is not None else "no column of words or texts",
        where=f"{table.path}:1",
        got=f"columns: {', '.join(table.header)}",
        expected="" if named is not None else f"one of {', '.join(COLUMNS)}",
        do=f"name it: {flag('text')} COLUMN",
    )


WORDS = WordFormat()
