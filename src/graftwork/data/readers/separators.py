"""The character between a table's columns: by its suffix, its first line (`sep=;`, as Excel reads it) or its header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from graftwork.data.readers.lines import TextLines, without_eol
from graftwork.data.readers.rejects import Bad, Cell, DataRow
from graftwork.data.readers.separated import NAMES, records

SAMPLE = 100  # records by which a separator is recognised
TARGETS = ("label", "labels", "relevance", "tags")  # usual columns of a target
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_SAID = re.compile(r'"?sep=(\\t|[^\w"\s]|\t)\1*"?', re.IGNORECASE)


@dataclass(frozen=True)
class Separation:
    """The separator and quoting of a CSV or TSV file's columns."""

    mark: str
    quoted: bool  # whether a cell may be in quotes, as in CSV
    said: bool = False  # whether the first line is `sep=…`, and not the header
    usual: bool = True  # whether it is what the suffix says

    @property
    def name(self) -> str:
        """The separator's name in words, such as `semicolon`."""
        return NAMES.get(self.mark, repr(self.mark))


OF_SUFFIX: Mapping[str, Separation] = {".csv": Separation(",", True), ".tsv": Separation("\t", False)}


def separation_of(lines: TextLines, suffix: str) -> Separation:
    """Return the separation of a `.csv` or `.tsv` file: the usual one of its suffix wherever that fits the content.

    Raises `DataError` for an error of the whole file, `StorageError`.
    """
    usual = OF_SUFFIX[suffix]
    line = next((line for _, line in lines), "")
    if not isinstance(line, str):
        return usual
    first = without_eol(line)
    if said := _SAID.fullmatch(first):
        mark = "\t" if said[1] == "\\t" else said[1]
        return replace(usual, said=True) if mark == usual.mark else Separation(mark, True, True, usual=False)
    if suffix == ".tsv":
        cells = first.split("\t")
        whole = len(cells) > 1 and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells)
        return replace(usual, quoted=True, usual=False) if whole else usual
    others = [mark for mark in ("\t", ";", "|") if mark in first]
    mark = _separator(lines, others) if others else ","
    return usual if mark == "," else Separation(mark, True, usual=False)


def _separator(lines: TextLines, others: list[str]) -> str:
    """Return the separator of a `.csv` file whose header also contains `others`: the comma wherever that fits."""
    header, fits = _read(lines, ",")
    read = {mark: _read(lines, mark) for mark in others}
    fitting = [mark for mark, (names, fit) in read.items() if fit and len(names) > 1]
    if len(header) < 2:
        return next(iter([*fitting, *(mark for mark in others if mark != "|")]), ",")
    if fits and set(TARGETS) & set(header):
        return ","
    return next((mark for mark in fitting if not (fits and mark == "|")), ",")


def _read(lines: TextLines, mark: str) -> tuple[list[str], bool]:
    """Return the header by this separator, and whether the next rows have as many fields."""
    found = list(islice(records(lines, mark, quoted=True), 1 + SAMPLE))
    if not found or isinstance(found[0], Bad):
        return [], False
    header = found[0][1]
    return header, all(not isinstance(row, Bad) and len(row[1]) == len(header) for row in found[1:])


def has_decimal_commas(separation: Separation | None) -> bool:
    """Return whether numbers may have a comma for a decimal point: where a semicolon separates the columns."""
    return separation is not None and separation.mark == ";"


def is_decimal_comma(cell: Cell) -> bool:
    """Return whether the cell is a number with a decimal comma, such as `3,5`."""
    return isinstance(cell, str) and bool(_DECIMAL_COMMA.fullmatch(cell))


def with_points(rows: Iterator[DataRow | Bad]) -> Iterator[DataRow | Bad]:
    """Replace the decimal comma of the last cell, where it is a number with one, by a point."""
    for row in rows:
        if not isinstance(row, Bad) and is_decimal_comma(row.cells[-1]):
            yield replace(row, cells=(*row.cells[:-1], str(row.cells[-1]).replace(",", ".")))
        else:
            yield row
