"""Strict streaming readers of tables: CSV (RFC 4180), TSV (never quoted), JSONL and what `formats.py` lists.

Nothing is guessed into another type: a cell is the text that stands in the file, "NA" and "None" included.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from graftwork.core.task import builtin_names
from graftwork.data import formats
from graftwork.data.lines import read_lines
from graftwork.errors import DataError, StorageError, clip, nearest

Cell = str | tuple[str, ...]  # a tuple where a row of JSONL has a list, and in CoNLL, where a row is a sentence

_CLOSING_QUOTE = re.compile(r'([^"]*+(?:""[^"]*+)*+)"')
_LONE_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)
_EOL = ("", "\n", "\r\n")


@dataclass(frozen=True, slots=True)
class Row:
    """One data row."""

    line: int  # of its first character, 1 is the file's first line
    cells: tuple[Cell, ...]  # in the order of the columns that were asked for
    rounded: int = 0  # spans whose borders cut through a word


@dataclass(frozen=True)
class Table:
    """A file whose header has been read. Rows are read anew, from the start, at every call of `rows`."""

    path: Path
    header: tuple[str, ...]  # JSONL: the keys of the first line

    def rows(self, columns: Sequence[str], label: str | None = None, words: str | None = None) -> Iterator[Row]:
        """The cells of `columns` of every row, in file order, one row in memory at a time.

        In JSONL every cell must be a string, but for the column `label`, which may also be a number, a boolean (its
        JSON text is taken) or a list of strings or numbers, and the column `words`, which must be a list of strings.
        Raises `DataError` with file:line at the first bad row, and at the end of a file that has none.
        """
        own, empty = formats.format_of(self.path), True
        found: Iterator[Row]
        if own is not None:
            found = (Row(*reading) for reading in own.rows(self.path, self.header, columns, label))
        else:
            is_json = _format(self.path) == ".jsonl"
            found = self._objects(columns, label, words) if is_json else self._records(columns)
        for row in found:
            empty = False
            yield row
        if empty:
            raise DataError("the file has a header and no rows", where=str(self.path), do="add rows below the header")

    def _records(self, columns: Sequence[str]) -> Iterator[Row]:
        places = [self.header.index(column) for column in columns]
        for line, fields in islice(_records(self.path), 1, None):
            if len(fields) != len(self.header):
                self._refuse_width(line, fields)
            yield Row(line, tuple(fields[place] for place in places))

    def _objects(self, columns: Sequence[str], label: str | None, words: str | None) -> Iterator[Row]:
        for line, item in json_objects(self.path):
            where = f"{self.path}:{line}"
            for column in columns:
                if column not in item:
                    _refuse_missing(column, item, where)
            cells = (_words(item[column], column, where) if column == words
                     else _cell(item[column], column, column == label, where) for column in columns)  # fmt: skip
            yield Row(line, tuple(cells))

    def _refuse_width(self, line: int, fields: list[str]) -> NoReturn:
        delimiter = {".csv": "comma", ".tsv": "tab"}[_format(self.path)]
        many = len(fields) > len(self.header)
        if not many:
            do = f"add the missing {delimiter}, or mend a line break inside a text"
        elif delimiter == "comma":
            do = 'put quotes round a text that holds a comma: "…, …"'
        else:
            do = "replace the tab inside a text by a space"
        raise DataError(
            f"the row has too {'many' if many else 'few'} fields",
            where=f"{self.path}:{line}",
            got=f"{len(fields)} field{'' if len(fields) == 1 else 's'}, {clip(' | '.join(fields))}",
            expected=f"{len(self.header)} fields: {', '.join(self.header)}",
            do=do,
        )


def open_table(path: Path) -> Table:
    """Read the header. The suffix decides the format.

    Raises `StorageError` when the file cannot be read, `DataError` for an unknown suffix, an empty file, a header
    that names a column twice, or a first line that is broken.
    """
    own = formats.format_of(path)
    if not path.is_file() and own is None:
        _refuse_absent(path)
    suffix = _format(path) if path.is_file() else ""
    if own is not None:
        header = own.header_of(path)
    elif suffix == ".jsonl":
        first_object = next(json_objects(path), None)
        header = None if first_object is None else tuple(first_object[1])
    else:
        first_record = next(_records(path), None)
        header = None if first_record is None else tuple(first_record[1])
    if header is None:
        raise DataError(
            "the file is empty",
            where=str(path),
            expected=_WHOLE.get(suffix, "a header and rows"),
            do="check that it was written whole",
        )
    _check_header(path, suffix, header)
    return Table(path, header)


def _refuse_absent(path: Path) -> NoReturn:
    """Say what stands at `path` instead of a file, or what may have been meant."""
    if path.is_dir():
        raise StorageError(
            "this is a folder",
            where=str(path),
            expected="a .csv, .tsv, .jsonl or .conll file",
            do="name a file inside it",
        )
    siblings = [item.name for item in path.parent.iterdir() if item.is_file()] if path.parent.is_dir() else []
    near = f"builtin:{path}" if str(path) in builtin_names() else nearest(path.name, siblings)
    raise StorageError("no such file", where=str(path), do=f"did you mean {near!r}?" if near else "check the path")


_READ = {
    ".csv": "comma-separated", ".tsv": "tab-separated", ".jsonl": "one JSON object per line", **formats.WHAT,
}  # fmt: skip
_WHOLE = {".jsonl": "one JSON object per line", **formats.WHAT}
_REMEDIES = {
    ".xlsx": "save the sheet as CSV (UTF-8)",
    ".xls": "save the sheet as CSV (UTF-8)",
    ".ndjson": "rename it to .jsonl",
    ".txt": "rename it to .tsv if a tab stands between the columns, to .csv if a comma does",
}


def _format(path: Path) -> str:
    """A suffix of `_READ`, with or without `.gz` behind it."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _READ:
        known = ", ".join(f"{name} ({what})" for name, what in _READ.items())
        raise DataError(
            f"unknown suffix {suffix!r}" if suffix else "the file's name has no suffix",
            where=str(path),
            expected=f"{known}, each also with .gz behind it",
            do=_REMEDIES.get(suffix, "rename or convert the file"),
        )
    return suffix


def _check_header(path: Path, suffix: str, header: tuple[str, ...]) -> None:
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        places = [str(place) for place, name in enumerate(header, 1) if name == twice[0]]
        raise DataError(
            f"two columns are called {twice[0]!r}",
            where=f"{path}:1",
            got=f"columns {' and '.join(places)}",
            expected="a name of its own for every column",
            do="rename or remove one of them",
        )
    if suffix not in (".csv", ".tsv"):
        return
    if "\r" in "".join(header):
        raise DataError(
            "a carriage return in the header",
            where=f"{path}:1",
            expected="lines that end in LF or CRLF",
            do="the file has line ends of the old Mac kind: save it again with LF",
        )
    others = {"\t": ".tsv", ",": ".csv", ";": ".csv"}
    for delimiter, other in others.items():
        if len(header) == 1 and delimiter in header[0]:
            do = "separate the columns by commas" if delimiter == ";" else f"rename the file to {other}"
            raise DataError(
                f"the header is one column that holds {delimiter!r}",
                where=f"{path}:1",
                got=clip(header[0]),
                expected=f"{_READ[suffix]} columns, as {suffix} says",
                do=do,
            )


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of every record of a CSV or TSV file, header first. Only the file's end may be blank."""
    records = _csv(path) if _format(path) == ".csv" else _tsv(path)
    blank = 0
    for line, fields in records:
        if fields == [""]:
            blank = blank or line
            continue
        if blank:
            _refuse_blank(path, blank)
        yield line, fields


def _tsv(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(path):
        yield number, _without_eol(line).split("\t")


def _csv(path: Path) -> Iterator[tuple[int, list[str]]]:
    lines = read_lines(path)
    for number, line in lines:
        content = _without_eol(line)
        plain = '"' not in content and "\r" not in content
        yield number, content.split(",") if plain else _quoted(path, lines, number, line)


def _quoted(path: Path, lines: Iterator[tuple[int, str]], number: int, line: str) -> list[str]:
    """The fields of a record that holds quotes and may go on over further `lines`."""
    fields, at = [], 0
    while True:
        if line.startswith('"', at):
            opened = f"{path}:{number}:{at + 1}"
            pieces, at = [], at + 1
            while not (closing := _CLOSING_QUOTE.match(line, at)):
                pieces.append(line[at:])
                number, line = next(lines, (0, ""))
                at = 0
                if not number:
                    raise DataError(
                        "a quote that is never closed",
                        where=opened,
                        got=clip("".join(pieces)),
                        do='close it, or double a quote that belongs to the text: ""',
                    )
            fields.append("".join([*pieces, closing[1]]).replace('""', '"'))
            at = closing.end()
            if line[at:] not in _EOL and line[at] != ",":
                raise DataError(
                    "text after a closing quote",
                    where=f"{path}:{number}:{at + 1}",
                    got=f"{clip(_without_eol(line[at:]))}; the quote opened at {opened}",
                    expected="a comma or the end of the line",
                    do='double a quote that belongs to the text: ""',
                )
        else:
            comma = line.find(",", at)
            end = comma if comma >= 0 else len(_without_eol(line))
            fields.append(_bare(path, number, at, line[at:end]))
            at = end
        if line[at:] in _EOL:
            return fields
        at += 1


def _bare(path: Path, number: int, at: int, field: str) -> str:
    """An unquoted field that begins at position `at` of its line; it may hold no quote and no carriage return."""
    refused = (('"', "a quote", "quote the field"), ("\r", "a carriage return", "save the file with LF line ends"))
    for character, name, remedy in refused:
        place = field.find(character)
        if place >= 0:
            raise DataError(
                f"{name} inside an unquoted field",
                where=f"{path}:{number}:{at + place + 1}",
                got=clip(field),
                expected='a field that holds one stands in quotes, its own quotes doubled: "say ""hi"""',
                do=f"{remedy}, or name the file .tsv if its columns are separated by tabs",
            )
    return field


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and object of every line of a JSONL file. Only the file's end may be blank."""
    blank = 0
    for number, line in read_lines(path):
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            _refuse_blank(path, blank)
        try:
            item = json.loads(
                _without_eol(line),
                parse_int=Literal,
                parse_float=Literal,
                parse_constant=_refuse_nan,
                object_pairs_hook=_unique,
            )
        except (ValueError, RecursionError) as error:
            place = f":{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            raise DataError(
                f"not a whole JSON object: {error.msg if isinstance(error, json.JSONDecodeError) else error}",
                where=f"{path}:{number}{place}",
                got=clip(_without_eol(line)),
                expected="one JSON object per line",
            ) from None
        if not isinstance(item, dict):
            raise DataError(
                "the line is not a JSON object",
                where=f"{path}:{number}",
                got=clip(_without_eol(line)),
                expected='an object such as {"text": "…", "label": "…"}',
            )
        if _LONE_SURROGATE.search(line):
            _refuse_surrogates(item, f"{path}:{number}")
        yield number, item


class Literal(str):
    """A JSON number, as the text that stands in the file."""

    __slots__ = ()


def _refuse_nan(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) != len(pairs):
        raise ValueError(f"the key {Counter(key for key, _ in pairs).most_common(1)[0][0]!r} stands twice in it")
    return item


def _refuse_surrogates(item: dict[str, Any], where: str) -> None:
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "half of a character: a \\u escape without its other half",
            where=where,
            got=clip(str(error.object)[error.start : error.end]),
            do="write the character itself in UTF-8",
        ) from None


def _cell(value: Any, column: str, is_label: bool, where: str) -> Cell:
    """A JSON value as a cell. A bool is an int in Python and a `Literal` a str: hence the exact types."""
    if type(value) is str:
        return value
    if is_label and isinstance(value, Literal):
        return str(value)
    if is_label and isinstance(value, bool):
        return "true" if value else "false"
    if is_label and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(map(str, value))
    raise DataError(
        f"the value of {column!r} is {'null' if value is None else 'no text'}",
        where=where,
        got=clip(str(value) if isinstance(value, Literal) else json.dumps(value, ensure_ascii=False)),
        expected="a string, a number, a boolean or a list of strings or numbers" if is_label else "a string",
        do="remove the line or fill the value in" if value is None else "write it as a string",
    )


def _words(value: Any, column: str, where: str) -> tuple[str, ...]:
    """A JSON list of strings."""
    if isinstance(value, list) and all(type(item) is str for item in value):
        return tuple(value)
    raise DataError(
        f"the value of {column!r} is no list of strings",
        where=where,
        got=clip(str(value) if isinstance(value, Literal) else json.dumps(value, ensure_ascii=False)),
        expected='a list of strings such as ["My", "card", "is", "lost"]',
        do="write each of them as a string of its own",
    )


def _refuse_missing(column: str, item: dict[str, Any], where: str) -> NoReturn:
    near = nearest(column, item)
    raise DataError(
        f"the key {column!r} is missing",
        where=where,
        got=f"keys: {', '.join(item) or 'none'}",
        expected="the same keys in every line",
        do=f"is it called {near!r} here?" if near else "add it or remove the line",
    )


def _refuse_blank(path: Path, line: int) -> NoReturn:
    raise DataError("an empty line", where=f"{path}:{line}", expected="a row on every line", do="remove the line")


def _without_eol(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
