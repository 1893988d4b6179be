"""Parquet files through pyarrow, a batch of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.errors import ConfigError, DataError, clip

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

ROWS_AT_ONCE = 1024
MOST_OF_A_GROUP = 2 << 30  # bytes of a group of rows, unpacked
MOST_ROWS = 50_000_000  # of a group
MOST_OF_A_FOOTER, MOST_NAMED = 64 << 20, 1_000_000  # bytes and entries of what the file says of itself


def header_of(path: Path) -> tuple[str, ...]:
    """The names of the columns."""
    return tuple(_open(path).schema_arrow.names)


def rows(path: Path, wanted: Sequence[str], label: str | None) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Number (1 is the first) and `wanted` cells of every row, as a row of JSONL has them.

    Texts and lists of texts are taken as they are, numbers and yes or no in the column `label` as JSON writes them.
    Raises `DataError` with file:row for anything else.
    """
    number = 0
    for batch in _open(path).iter_batches(batch_size=ROWS_AT_ONCE, columns=list(dict.fromkeys(wanted))):
        columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in wanted]
        for cells in zip(*columns, strict=True):
            number += 1
            yield number, tuple(cell_of(*pair, label, f"{path}:{number}") for pair in zip(cells, wanted, strict=True))


def cell_of(value: Any, column: str, label: str | None, where: str) -> str | tuple[str, ...]:
    """A value as a cell; of the column `label` a number or yes or no as JSON writes it. Raises `DataError`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if column == label and isinstance(value, bool):
        return "true" if value else "false"
    if column == label and isinstance(value, int | float):
        return repr(value)
    raise DataError(
        f"the value of {column!r} is {'null' if value is None else 'no text'}",
        where=where,
        got=clip(repr(value)),
        expected="a string, or of the target a number, true or false, or a list of strings",
        do="remove the row or fill the value in" if value is None else "write it as a string",
    )


def _open(path: Path) -> ParquetFile:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ConfigError(
            "reading Parquet needs pyarrow",
            where=str(path),
            do='install it: pip install "graftwork[parquet]", or write the table as CSV (UTF-8)',
        ) from None
    try:
        opened = ParquetFile(path, thrift_string_size_limit=MOST_OF_A_FOOTER, thrift_container_size_limit=MOST_NAMED)
    except ArrowException as error:
        raise DataError(f"not a whole Parquet file: {error}", where=str(path), do="write it again") from None
    _refuse_large(path, opened)
    return opened


def _refuse_large(path: Path, opened: ParquetFile) -> None:
    """Raises `DataError` where a group of rows, which is unpacked at once, takes far more memory than the file."""
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
