"""Rows of JSON objects: the cells of one, and files that are one list of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from graftwork.data.readers.annotated_texts import items_of
from graftwork.data.readers.json_text import LITERAL_DECODER, cell_of, json_text, whole_json
from graftwork.data.readers.nested_columns import unnested
from graftwork.data.readers.rejects import Bad, Cell, DataRow, RowSource
from graftwork.errors import DataError, clip, nearest


def opened(path: Path, remedy: str) -> RowSource:
    """Return the rows of a file that is one JSON list of objects; the keys of the first good one are the columns.

    Raises `DataError`, for a file that is not JSON with this `remedy`.
    """
    listed = whole_json(path, remedy, LITERAL_DECODER)

    def rows(wanted: Sequence[str], labels: Sequence[str], words: str | None) -> Iterator[DataRow | Bad]:
        for number, _, where, item in items_of(path, listed):
            try:
                yield DataRow(number, cells_of(_object(item, where), wanted, labels, words, where))
            except DataError as error:
                yield Bad(path, number, error)

    return RowSource(_header(path, listed), rows)


def _header(path: Path, listed: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the columns of the first good object; None of an empty list. Raises the first error if none is good."""
    wrong: DataError | None = None
    for _, _, where, item in items_of(path, listed):
        try:
            return tuple(unnested(_object(item, where), where))
        except DataError as error:
            wrong = wrong or error
    if wrong is not None:
        raise wrong
    return None


def _object(item: Any, where: str) -> Mapping[str, Any]:
    if isinstance(item, dict):
        return item
    raise DataError(
        "the item is not an object",
        where=where,
        got=json_text(item),
        expected='an object such as {"text": "…", "label": "…"}',
        do="write each row as an object of its own",
    )


def cells_of(
    item: Mapping[str, Any], columns: Sequence[str], labels: Sequence[str], words: str | None, where: str
) -> tuple[Cell, ...]:
    """Return the cells of `columns` of an object, with JSON numbers as `Literal`. Raises `DataError`."""
    if any(column not in item for column in columns):
        item = unnested(item, where)
    found = []
    for column in columns:
        if column not in item:
            _refuse_missing(column, item, where)
        found.append(cell_of(item[column], column, where, is_label=column in labels, is_words=column == words))
    return tuple(found)


def _refuse_missing(column: str, item: Mapping[str, Any], where: str) -> NoReturn:
    near = nearest(column, item)
    raise DataError(
        f"the key {column!r} is missing",
        where=where,
        got=f"keys: {', '.join(item) or 'none'}",
        expected="the same keys in every row",
        do=f"is it called {clip(near)} here?" if near else "add it or remove the row",
    )
