"""Reading of parallel text: a table with two columns, or two files whose lines belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from graftwork.data.readers.json_text import json_object
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import Bad
from graftwork.data.readers.separated import records
from graftwork.errors import ConfigError, DataError
from graftwork.pretrain.text_files import JSON_SUFFIXES, LONGEST_OBJECT, TextLine, format_suffix, lines, text_in

SEPARATORS = {".tsv": "\t", ".csv": ","}
TABLES = (*SEPARATORS, *JSON_SUFFIXES)
COLUMNS = ("source", "target")  # unless others are named


class TextPair(NamedTuple):
    """A text and what it becomes, in another language say."""

    source: str
    target: str


def columns_of(field: str) -> tuple[str, str]:
    """Return the two columns that `field` names, "de,en" say; "text", which names one, stands for `COLUMNS`."""
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

    Tables are read one by one: .tsv, .csv and .jsonl. Other files are two and two: line for line, what the first holds
    belongs to what the second holds. Raises `DataError` for a bad row, a column that is missing and lines without a
    partner, `StorageError` for a file that can't be read.
    """
    columns, first = columns_of(field), None
    for path in files:
        if format_suffix(path) in TABLES:
            found = _of_objects(path, columns, encoding) if format_suffix(path) in JSON_SUFFIXES else _of(path, columns)
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
            do="name the other file behind it",
        )


def _of(path: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield two columns of a table; those of .csv may be quoted."""
    suffix, places, width = format_suffix(path), None, 0
    for record in records(TextLines(path), SEPARATORS[suffix], quoted=suffix == ".csv"):
        if isinstance(record, Bad):
            raise record.error
        number, cells, _ = record
        if places is None:
            if missing := [name for name in columns if name not in cells]:
                raise _no_column(missing[0], f"{path}:{number}", ", ".join(cells))
            places, width = [cells.index(name) for name in columns], len(cells)
        elif len(cells) != width:
            raise DataError(
                "a row of another width than the header",
                where=f"{path}:{number}",
                got=f"{len(cells)} cells",
                expected=f"{width}",
                do="mend the row or remove it",
            )
        else:
            yield cells[places[0]], cells[places[1]]


def _of_objects(path: Path, columns: tuple[str, str], encoding: str) -> Iterator[tuple[str, str]]:
    for line in _whole_lines(path, encoding):
        if line.text.strip():
            where = f"{path}:{line.number}"
            row = json_object(line.text.strip(), where)
            if missing := [name for name in columns if name not in row]:
                raise _no_column(missing[0], where, ", ".join(row) or "none")
            yield text_in(row, columns[0], where), text_in(row, columns[1], where)


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


def _no_column(name: str, where: str, found: str) -> DataError:
    return DataError(f"no column {name!r}", where=where, got=f"the columns {found}", do="name both: --field ONE,OTHER")
