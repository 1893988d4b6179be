"""Rows as readers yield them. The first unreadable row stops a command, or all of them are set aside in a file."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from graftwork.data.readers.embedded_media import EmbeddedFile
from graftwork.data.readers.lines import TextLines, raw_lines
from graftwork.errors import ConfigError, DataError
from graftwork.io.files import writing

T = TypeVar("T")
LONGEST = 10_000  # most characters of a row that are written


# a tuple for a list in JSONL, and for a sentence, which is a row, in CoNLL
Cell = str | tuple[str, ...] | EmbeddedFile
NumberedRow = tuple[
    int, Mapping[str, Any], int, int
]  # first line, column -> cell, rounded spans and last line as in DataRow


@dataclass(frozen=True, slots=True)
class DataRow:
    """One data row."""

    line: int  # its first line, counted from 1; in files without lines its row number
    cells: tuple[Cell, ...]  # in the order of the requested columns
    rounded: int = 0  # number of spans with a border inside a word
    last: int = 0  # its last line; 0 where the row has no lines of its own


@dataclass(frozen=True, slots=True)
class Bad:
    """An unreadable row. Readers yield it in its place, and the caller decides whether to continue."""

    path: Path  # file that contains it
    line: int  # its first line; in files without lines its row number
    error: DataError
    last: int = 0  # its last line; 0 where the row has no lines of its own


RowReader = Callable[[Sequence[str], Sequence[str], str | None], Iterator[DataRow | Bad]]
# arguments: the requested columns, the columns of the target, and the column that may hold lists


@dataclass(frozen=True)
class RowSource:
    """An open file, folder or hub set in a format other than CSV, TSV and plain JSONL: its columns and row reader."""

    header: tuple[str, ...] | None  # None for a file without rows
    rows: RowReader
    told: str = ""  # description of the content for the data report; "" if none is needed
    spans_key: str | None = None  # in doccano's JSONL, the key of the spans, which words and tags are made of

    @classmethod
    def named(
        cls,
        header: tuple[str, ...] | None,
        rows: Callable[[], Iterable[NumberedRow | Bad]],
        told: str = "",
        spans_key: str | None = None,
    ) -> RowSource:
        """Return the source of a reader that yields all columns of a row by name."""

        def wanted(columns: Sequence[str], labels: Sequence[str], words: str | None) -> Iterator[DataRow | Bad]:
            for found in rows():
                if isinstance(found, Bad):
                    yield found
                else:
                    line, cells, rounded, last = found
                    yield DataRow(line, tuple(cells[name] for name in columns), rounded, last)

        return cls(header, wanted, told, spans_key)


def each_parsed(lines: TextLines, parse: Callable[[str, str], T]) -> Iterator[tuple[int, T] | Bad]:
    """Yield the number of every line that is not blank and `parse(line, location)`, or the bad line.

    `parse` raises `DataError`.
    """
    for number, line in lines:
        if isinstance(line, str) and not line.strip():
            continue
        try:
            if isinstance(line, DataError):
                raise line
            found = parse(line, f"{lines.path}:{number}")
        except DataError as error:
            yield Bad(lines.path, number, error, number)
        else:
            yield number, found


def map_rows(found: Iterable[DataRow | Bad], path: Path, made: Callable[[DataRow], T]) -> Iterator[T | Bad]:
    """Yield `made(row)` for every row of `path`, or the bad row if this raises `DataError`."""
    for row in found:
        if isinstance(row, Bad):
            yield row
            continue
        try:
            one = made(row)
        except DataError as error:
            yield Bad(path, row.line, error, row.last)
        else:
            yield one


def none_bad(found: Iterable[T | Bad]) -> Iterator[T]:
    """Yield all of `found`. Raises the error of the first bad row."""
    for row in found:
        if isinstance(row, Bad):
            raise row.error
        yield row


@dataclass
class Rejects:
    """The bad rows of one file that are set aside. With `aside=False`, the first bad row's error is raised instead."""

    aside: bool = False
    found: list[Bad] = field(default_factory=list)

    def refuse(self, bad: Bad) -> None:
        """Set `bad` aside, or raise its error."""
        if not self.aside:
            raise bad.error
        self.found.append(bad)

    def require_rows(self, path: Path, rows: int) -> None:
        """Raise `DataError` where no row of `path` remains."""
        if self.found and not rows:
            first = self.found[0].error
            raise DataError(
                "no row of the file can be read",
                where=str(path),
                got=f"{len(self.found):,} bad rows; the first, {first.where}: {first.what}",
                do="mend the file; without --rejects the first bad row is told in full",
            )


def file_changed(path: Path) -> DataError:
    """Return the error for a file whose second reading differs from the first."""
    return DataError("the file changed while it was read", where=str(path), do="run the same command again")


def require_apart(rejects: str | None, files: Mapping[str, Path]) -> None:
    """Raise `ConfigError` where the file for bad rows is also an input file."""
    for split, path in files.items():
        if rejects and Path(rejects).resolve() == path.resolve():
            raise ConfigError(
                f"bad rows would be written over the {split} file",
                where=rejects,
                do="name another file: --rejects FILE",
            )


def write_rejects(path: Path, found: Iterable[Bad]) -> None:
    """Write a line of JSON for each bad row: its location, its error, and its original text.

    The write is atomic, and also done when there are none. Raises `StorageError`.
    """
    listed = list(found)
    texts = _texts(listed)
    with writing(path) as stream:
        for bad in listed:
            error = bad.error
            told = {"file": str(bad.path), "line": bad.line, "where": error.where, "what": error.what}
            told |= {name: text for name in ("got", "expected", "do") if (text := getattr(error, name))}
            text = texts.get((bad.path, bad.line, bad.last))
            told |= {} if text is None else {"row": text}
            stream.write(json.dumps(told).encode() + b"\n")


def _texts(found: Iterable[Bad]) -> dict[tuple[Path, int, int], str]:
    """Map (file, first line, last line) to the text of those lines; invalid UTF-8 bytes become \\xNN."""
    wanted: defaultdict[Path, list[tuple[int, int]]] = defaultdict(list)
    for bad in found:
        if bad.last:
            wanted[bad.path].append((bad.line, bad.last))
    return {(path, *place): text for path, places in wanted.items() for place, text in _stretches(path, places)}


def _stretches(path: Path, places: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the text of ranges of lines, which may overlap, in one pass."""
    waiting, held = deque(sorted(set(places))), dict[tuple[int, int], str]()
    for number, raw in enumerate(raw_lines(path), 1):
        while waiting and waiting[0][0] <= number:
            held[waiting.popleft()] = ""
        for place in list(held):
            if len(held[place]) < LONGEST:
                held[place] += raw.decode("utf-8", "backslashreplace")
            if place[1] <= number:
                yield place, held.pop(place)[:LONGEST]
        if not waiting and not held:
            return
    for place, text in held.items():
        yield place, text[:LONGEST]
