"""Columns of an input file that are repeated beside its answers, such as an id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graftwork.core.example import Example
from graftwork.data.readers.columns import column_of
from graftwork.data.readers.rejects import Bad, Cell, file_changed
from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError
from graftwork.io.gzip_files import plain_name
from graftwork.module.input_format import Rows


@dataclass(frozen=True, slots=True)
class ExampleWithKept(Example):
    """An example with further cells of its row."""

    kept: Mapping[str, Cell] = field(default_factory=dict)  # column -> cell; a number or boolean is its JSON text


def rows_with(columns: Sequence[str], read: Rows, source: Path, roles: Sequence[str]) -> Rows:
    """Return a reader of the same rows with the cells of `columns`; an example of several rows has those of its first.

    Raises `ConfigError` for a column that the file lacks, and for SQuAD's JSON, which has no columns. A row with an
    unreadable cell is yielded as `Bad`.
    """
    if "question" in roles and Path(plain_name(source)).suffix == ".json":
        raise ConfigError(
            "SQuAD's JSON has no columns",
            where=str(source),
            got="--keep",
            do="omit --keep; answers keep the file's order",
        )
    table = open_table(source, spans="words" in roles)
    wanted = [column_of(table, "keep", column, column) for column in dict.fromkeys(columns)]

    def rows() -> Iterator[Example | Bad]:
        cells = table.readings(wanted, label=wanted)
        for example in read():
            if isinstance(example, Bad):
                yield example
                continue
            line = line_of(example)
            row = next((row for row in cells if row.line == line), None)
            if row is None:
                raise file_changed(source)
            if isinstance(row, Bad):
                yield row
            else:
                kept = dict(zip(wanted, row.cells, strict=True))
                yield ExampleWithKept(example.id, example.inputs, example.target, example.source, kept)

    return rows


def line_of(example: Example) -> int:
    """Return the line of an example of a file, or its row number if the file has no lines."""
    return int(example.id.rpartition("/")[2])


def kept_of(example: Example) -> dict[str, str | list[str]]:
    """Return the kept cells of an example as JSON, by column."""
    kept = example.kept if isinstance(example, ExampleWithKept) else {}
    return {column: list(cell) if isinstance(cell, tuple) else str(cell) for column, cell in kept.items()}
