"""Reading of parallel text: a table with two columns, or two files whose lines are aligned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from graftwork.data.readers.table import open_table
from graftwork.errors import ConfigError, DataError
from graftwork.pretrain.text_files import JSON_SUFFIXES, LONGEST_OBJECT, TextLine, format_suffix, lines

TABLES = (".tsv", ".csv", ".parquet", *JSON_SUFFIXES)
COLUMNS = ("source", "target")  # unless others are named


class TextPair(NamedTuple):
    """A source text and its target, such as its translation."""

    source: str
    target: str


def columns_of(field: str) -> tuple[str, str]:
    """Return the two columns named in `field`, as in "de,en"; "text" stands for `COLUMNS`. Raises `ConfigError`."""
    names = [name.strip() for name in field.split(",")]
    if field == "text":
        return COLUMNS
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise ConfigError(
            "a pair of texts has two columns", got=f"--field {field}", expected="two names, like --field source,target"
        )
    return names[0], names[1]


def text_pairs(files: Sequence[Path], field: str, encoding: str) -> Iterator[TextPair]:
    """Yield the pairs of all files in order, both texts stripped; one with an empty text is left out.

    A table (.tsv, .csv, .jsonl, .parquet; in UTF-8) holds both texts. Other files come in twos, sources before targets,
    aligned line by line. Raises `DataError` for a bad row, a missing column or a line without a partner, `StorageError`
    for a file that can't be read.
    """
    columns, first = columns_of(field), None
    for path in files:
        if format_suffix(path) in TABLES:
            found = _of_table(path, columns)
        elif first is None:
            first = path
            continue
        else:
            found, first = _of_lines(first, path, encoding), None
        for source, target in found:
            if source.strip() and target.strip():
                yield TextPair(source.strip(), target.strip())
    if first is not None:
        raise DataError(
            "a file of texts without the file of their partners",
            where=str(first),
            expected="two plain files, line for line, or a table (.tsv, .csv, .jsonl) with two columns",
            do="name the other file after it",
        )


def _of_table(path: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    table = open_table(path)
    if missing := [name for name in columns if name not in table.header]:
        raise DataError(
            f"no column {missing[0]!r}",
            where=str(path),
            got=f"the columns {', '.join(table.header)}",
            do="name both: --field ONE,OTHER",
        )
    for row in table.rows(columns):
        yield str(row.cells[0]), str(row.cells[1])


def _of_lines(one: Path, two: Path, encoding: str) -> Iterator[tuple[str, str]]:
    for source, target in zip_longest(_whole_lines(one, encoding), _whole_lines(two, encoding)):
        if source is None or target is None:
            longer, line = (two, target) if source is None else (one, source)
            raise DataError(
                "a line without a partner",
                where=f"{longer}:{line.number}",
                got=f"{two if longer == one else one} ends before it",
                expected="two files of as many lines, line for line",
                do="mend the files; where a text has no partner, leave an empty line",
            )
        yield source.text, target.text


def _whole_lines(path: Path, encoding: str) -> Iterator[TextLine]:
    for line in lines(path, encoding, LONGEST_OBJECT):
        if not line.ends:
            raise DataError(
                "a line is too long for a pair of texts",
                where=f"{path}:{line.number}",
                expected=f"up to {LONGEST_OBJECT:,} characters",
                do="cut the text into several lines",
            )
        yield line
