"""Strict streaming readers of tables: CSV (RFC 4180), TSV (never quoted), JSONL and `whole_file_formats`.

No types are guessed: a cell is the file's text, "NA" and "None" included.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from graftwork.core.task import builtin_names
from graftwork.data.readers import whole_file_formats
from graftwork.data.readers.json_rows import cells_of
from graftwork.data.readers.json_text import json_objects
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.nested_columns import unnested
from graftwork.data.readers.rejects import Bad, DataRow, RowSource, none_bad
from graftwork.data.readers.separated import NAMES, records
from graftwork.data.readers.separators import Separation, separation_of
from graftwork.errors import DataError, StorageError, clip, nearest
from graftwork.io.gzip_files import plain_name
from graftwork.units import several

MOST_WORDS = 5  # words from which a column name is probably a text, and the header missing


@dataclass(frozen=True)
class Table:
    """A file whose header has been read. Every call of `rows` begins at the start again."""

    lines: TextLines
    header: tuple[str, ...]  # JSONL: the keys of the first line
    source: RowSource | None = None  # the reader of another format; None: CSV, TSV or plain JSONL
    separation: Separation | None = None  # of CSV and TSV

    @property
    def path(self) -> Path:
        """The file, the folder, or the name of the hub set."""
        return self.lines.path

    @property
    def lacks_header(self) -> bool:
        """Whether the first line is probably a row: a column's name is long."""
        return any(len(name.split()) >= MOST_WORDS for name in self.header)

    @property
    def description(self) -> str:
        """The file's name for the data report, with what was read from it where the name does not say it."""
        what = self.source.told if self.source is not None else ""
        return f"{self.path.name} ({what})" if what else self.path.name

    def without_spans(self) -> Table:
        """Return the table of the same file with JSONL read as plain rows, even if its texts have spans."""
        return _opened(self.lines, spans=False)

    def rows(
        self, columns: Sequence[str], label: str | Sequence[str] | None = None, words: str | None = None
    ) -> Iterator[DataRow]:
        """Yield the rows of `readings`. Raises `DataError` with file:line also at the first bad row."""
        return none_bad(self.readings(columns, label, words))

    def readings(
        self,
        columns: Sequence[str],
        label: str | Sequence[str] | None = None,
        words: str | None = None,
        family: re.Pattern[str] | None = None,
    ) -> Iterator[DataRow | Bad]:
        """Yield the cells of `columns` of every row, or the bad row, in file order, one row in memory at a time.

        In JSONL every cell must be a string, except in the column or columns `label`, which may also hold a number, a
        boolean (its JSON text is used) or a list of strings or numbers, and in the column `words`, which must hold a
        list of strings, or a named list (`json_text.named_list`). In Parquet and hub sets `words` may hold a list. In
        JSONL a row with a key of this `family` that the first line lacks is bad.
        Raises `DataError` for an error of the whole file, and at the end of one without rows.
        """
        empty = True
        found: Iterator[DataRow | Bad]
        labels = (label,) if isinstance(label, str) else tuple(label or ())
        if self.source is not None:
            found = self.source.rows(columns, labels, words)
        else:
            is_json = _format(self.path) == ".jsonl"
            found = self._objects(columns, labels, words, family) if is_json else self._records(columns)
        for row in found:
            empty = False
            yield row
        if empty:
            raise DataError(
                "the file has a header and no rows",
                where=str(self.path),
                got=", ".join(self.header),
                expected="rows below the header",
                do="add rows below the header",
            )

    def holds_lists(self, column: str) -> bool:
        """Return whether the first readable row has a list in this column."""
        is_json = suffix_of(self.path) in (".jsonl", ".json")
        words = None if is_json else column  # in JSON, `words` may hold nothing but lists
        found = self.readings([column], label=column, words=words)  # a label may be of any type
        first = next((row for row in found if not isinstance(row, Bad)), None)
        return first is not None and isinstance(first.cells[0], tuple)

    def _records(self, columns: Sequence[str]) -> Iterator[DataRow | Bad]:
        places = [self.header.index(column) for column in columns]
        assert self.separation is not None
        found = records(self.lines, self.separation.mark, self.separation.quoted)
        for record in islice(found, 1 + self.separation.said, None):
            if isinstance(record, Bad):
                yield record
                continue
            line, fields, last = record
            if tuple(fields) == self.header:
                yield Bad(self.path, line, self._header_again(line), last)
            elif len(fields) == len(self.header):
                yield DataRow(line, tuple(fields[place] for place in places), 0, last)
            else:
                yield Bad(self.path, line, self._wrong_width(line, fields), last)

    def _objects(
        self, columns: Sequence[str], labels: Sequence[str], words: str | None, family: re.Pattern[str] | None
    ) -> Iterator[DataRow | Bad]:
        for found in json_objects(self.lines):
            if isinstance(found, Bad):
                yield found
                continue
            line, item = found
            try:
                if family is not None:
                    self._refuse_further(family, item, line)
                row = DataRow(line, cells_of(item, columns, labels, words, f"{self.path}:{line}"), 0, line)
            except DataError as error:
                yield Bad(self.path, line, error, line)
            else:
                yield row

    def _refuse_further(self, family: re.Pattern[str], item: dict[str, Any], line: int) -> None:
        further = [key for key in item if key not in self.header and family.fullmatch(key)]
        if further:
            raise DataError(
                f"the first line has no key {clip(further[0])}",
                where=f"{self.path}:{line}",
                got=f"keys: {', '.join(item)}",
                expected=f"the keys of the first line: {', '.join(self.header)}",
                do='for rows that have more of them than others write lists: "choices": ["…", "…", "…"]',
            )

    def _header_again(self, line: int) -> DataError:
        return DataError(
            "the line repeats the header",
            where=f"{self.path}:{line}",
            got=clip(" | ".join(self.header)),
            expected="a row",
            do="remove the line, as where files were joined",
        )

    def _wrong_width(self, line: int, fields: list[str]) -> DataError:
        assert self.separation is not None
        mark, name, many = self.separation.mark, self.separation.name, len(fields) > len(self.header)
        if not many:
            do = f"add the missing {name}, or mend a line break inside a text"
        elif self.separation.quoted:
            do = f'put quotes round a text that holds a {name}: "…{mark} …"'
        else:
            do = f"replace the {name} inside a text by a space"
        if not self.separation.quoted and any(field.startswith('"') for field in fields):
            do = "if cells are in quotes, as in CSV, rename the file to .csv; tabs may separate its columns"
        return DataError(
            f"the row has too {'many' if many else 'few'} fields",
            where=f"{self.path}:{line}",
            got=f"{several(len(fields), 'field')}, {clip(' | '.join(fields))}",
            expected=f"{len(self.header)} fields: {', '.join(self.header)}",
            do=do,
        )


def open_table(path: Path, spans: bool = True) -> Table:
    """Read the header. The suffix decides the format; with `spans`, JSONL with spans of texts is recognised by content.

    Raises `StorageError` when the file cannot be read, `DataError` for an unknown suffix, an empty file, a header
    that names a column twice, or a broken first line.
    """
    return _opened(TextLines(path), spans)


def _opened(lines: TextLines, spans: bool) -> Table:
    path, source = lines.path, whole_file_formats.opened(lines, spans)
    if not path.is_file() and source is None:
        _refuse_absent(path)
    suffix = "" if not path.is_file() else (suffix_of(path) or "") if source is not None else _format(path)
    separation: Separation | None = None
    if source is not None:
        header = source.header
    elif suffix == ".jsonl":
        header = _keys(lines)
    else:
        separation = separation_of(lines, suffix)
        header = _first(lines, separation)
    if header is None:
        raise DataError(
            "the file is empty",
            where=str(path),
            expected=_WHOLE.get(suffix, "a header and rows"),
            do="check that it was written whole",
        )
    _check_header(path, suffix, header)
    return Table(lines, header, source, separation)


def _keys(lines: TextLines) -> tuple[str, ...] | None:
    """Return the keys of the first valid object; bad lines before it are reported later, as rows."""
    wrong: DataError | None = None
    for found in json_objects(lines):
        try:
            if isinstance(found, Bad):
                raise found.error
            return tuple(unnested(found[1], f"{lines.path}:{found[0]}"))
        except DataError as error:
            wrong = wrong or error
    if wrong is not None:
        raise wrong
    return None


def _first(lines: TextLines, separation: Separation) -> tuple[str, ...] | None:
    record = next(islice(records(lines, separation.mark, separation.quoted), int(separation.said), None), None)
    if isinstance(record, Bad):
        raise record.error
    return None if record is None else tuple(record[1])


def _refuse_absent(path: Path) -> NoReturn:
    """Raise `StorageError` with what is at `path` instead of a file, or what may have been meant."""
    if path.is_dir():
        raise StorageError(
            "this is a folder",
            where=str(path),
            expected="a .csv, .tsv, .jsonl or .conll file",
            do="name a file inside it",
        )
    if path.parts[:1] in (("http:",), ("https:",)):
        raise StorageError("this is an address, not a file", where=str(path), do="download it, and name the file")
    siblings = [item.name for item in path.parent.iterdir() if item.is_file()] if path.parent.is_dir() else []
    near = f"builtin:{path}" if str(path) in builtin_names() else nearest(path.name, siblings)
    raise StorageError("no such file", where=str(path), do=f"did you mean {near!r}?" if near else "check the path")


_READ = {
    ".csv": "comma-separated", ".tsv": "tab-separated", ".jsonl": "one JSON object per line", **whole_file_formats.WHAT,
}  # fmt: skip
_WHOLE = {".jsonl": "one JSON object per line", **whole_file_formats.WHAT}
_REMEDIES = {
    ".xlsx": "save the sheet as CSV (UTF-8)",
    ".xls": "save the sheet as CSV (UTF-8)",
    ".arrow": "name the folder that save_to_disk wrote it in; of another one make Parquet",
    ".ndjson": "rename it to .jsonl",
    ".jsonlines": "rename it to .jsonl",
    ".txt": "rename it to .tsv if a tab is between the columns, to .csv for commas, to .conll for a word per line",
}


def suffix_of(path: Path) -> str | None:
    """Return the lower-case suffix that decides a file's format, without that of its packing; None if it is unknown."""
    suffix = Path(plain_name(path)).suffix
    return suffix if suffix in _READ else None


def _format(path: Path) -> str:
    """Return the suffix of `_READ` that the file has, packed or not. Raises `DataError` for an unknown one."""
    suffix = suffix_of(path)
    if suffix is None:
        suffix = Path(plain_name(path)).suffix
        raise DataError(
            f"unknown suffix {suffix!r}" if suffix else "the file's name has no suffix",
            where=str(path),
            expected=f"{', '.join(_READ)}; all but .parquet with .gz, .bz2 or .xz after it too",
            do=_REMEDIES.get(suffix, "rename or convert the file"),
        )
    return suffix


def _check_header(path: Path, suffix: str, header: tuple[str, ...]) -> None:
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        places = [str(place) for place, name in enumerate(header, 1) if name == twice[0]]
        raise DataError(
            f"two columns are called {clip(twice[0])}",
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
    delimiter = next((mark for mark in NAMES if len(header) == 1 and mark in header[0] and mark != "|"), None)
    if delimiter is not None:
        raise DataError(
            f"the header is one column that holds {delimiter!r}",
            where=f"{path}:1",
            got=clip(header[0]),
            expected=f"{_READ[suffix]} columns, as {suffix} says",
            do="rename the file to .csv" if suffix == ".tsv" else "take the quotes round the whole lines away",
        )
