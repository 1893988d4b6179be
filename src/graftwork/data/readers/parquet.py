"""Reader of Parquet files through pyarrow, a batch of rows in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.data.readers.rejects import Bad
from graftwork.errors import DataError, clip
from graftwork.io.extras import extra
from graftwork.io.files import storage_errors

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

ROWS_AT_ONCE = 1024
MOST_OF_A_GROUP = 2 << 30  # most bytes of a row group, unpacked
MOST_ROWS = 50_000_000  # most rows of a row group
MOST_OF_A_FOOTER, MOST_NAMED = 64 << 20, 1_000_000  # most bytes and entries of the file's metadata


def header_of(path: Path) -> tuple[str, ...]:
    """Return the column names."""
    return tuple(_open(path).schema_arrow.names)


def rows(
    path: Path, wanted: Sequence[str], label: str | None, words: str | None = None
) -> Iterator[tuple[int, tuple[Any, ...]] | Bad]:
    """Yield the number (from 1) and `wanted` cells of every row, in the form of a JSONL row.

    Texts are used unchanged, in the column `words` also lists of texts, and in the column `label` also lists, numbers
    and booleans as JSON writes them; a row with anything else is bad.
    """
    number = 0
    for columns in _batches(path, wanted):
        for cells in zip(*columns, strict=True):
            number += 1
            yield row_of(cells, wanted, label, words, path, number)


def row_of(
    values: Sequence[Any], wanted: Sequence[str], label: str | None, words: str | None, path: Path, number: int
) -> tuple[int, tuple[Any, ...]] | Bad:
    """Return row `number` of values as cells, or the bad row."""
    where = f"{path}:{number}"
    try:
        cells = (_cell(value, name, label, words, where) for value, name in zip(values, wanted, strict=True))
        return number, tuple(cells)
    except DataError as error:
        return Bad(path, number, error)


def _batches(path: Path, wanted: Sequence[str]) -> Iterator[list[list[Any]]]:
    """Yield the values of every `wanted` column, a batch of rows at a time."""
    opened = _open(path)
    with whole(path):
        for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(dict.fromkeys(wanted))):
            yield [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in wanted]


def _cell(value: Any, column: str, label: str | None, words: str | None, where: str) -> str | tuple[str, ...]:
    """Convert a value to a cell. Raises `DataError`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and column in (label, words):
        items = [repr(item) if column == label and _is_number(item) else item for item in value]
        if all(isinstance(item, str) for item in items):
            return tuple(items)
    if column == label and isinstance(value, bool):
        return "true" if value else "false"
    if column == label and _is_number(value):
        return repr(value)
    raise DataError(
        f"the value of {column!r} is {'null' if value is None else 'no number' if _is_nan(value) else 'no text'}",
        where=where,
        got=clip(repr(value)),
        expected="a string, or of the target a number, true or false, or a list of strings or numbers",
        do="remove the row or fill the value in" if value is None or _is_nan(value) else "write it as a string",
    )


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_nan(value: Any) -> bool:
    """Return whether the value is NaN or infinite, as missing numbers of a table are."""
    return isinstance(value, float) and not math.isfinite(value)


def _open(path: Path) -> ParquetFile:
    with extra("parquet", "reading Parquet", where=str(path), instead="write the table as CSV (UTF-8)"):
        from pyarrow import parquet
    if path.suffix.lower() == ".gz":
        raise DataError(
            "a packed Parquet file", where=str(path), expected="one that is not packed: it is by itself", do="unpack it"
        )
    with storage_errors(path), path.open("rb"):
        pass  # so that later errors are about its content
    with whole(path):
        opened = parquet.ParquetFile(
            path, thrift_string_size_limit=MOST_OF_A_FOOTER, thrift_container_size_limit=MOST_NAMED
        )
    _refuse_large(path, opened)
    return opened


def _refuse_large(path: Path, opened: ParquetFile) -> None:
    """Raise `DataError` for a row group, which is unpacked at once, that takes far more memory than the file."""
    told = opened.metadata
    for number in range(told.num_row_groups):
        group = told.row_group(number)
        if group.total_byte_size > MOST_OF_A_GROUP or group.num_rows > MOST_ROWS:
            raise DataError(
                "a group of rows is too large to be unpacked safely",
                where=str(path),
                got=f"{group.total_byte_size:,} bytes, {group.num_rows:,} rows",
                expected=f"at most {MOST_OF_A_GROUP:,} bytes and {MOST_ROWS:,} rows",
                do="write it with smaller groups: row_group_size",
            )


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Convert pyarrow's errors about a damaged file to a `DataError`."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            "not a whole Parquet file",
            where=str(path),
            got=clip(told, 200),
            expected="a file that can be read to its end",
            do="write it again",
        ) from None
