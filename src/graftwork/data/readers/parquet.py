"""Reader of Parquet files through pyarrow, a batch of rows in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.data.readers.embedded_media import AT_ONCE, embedded_file, refuse_several
from graftwork.data.readers.json_text import Literal, cell_of
from graftwork.data.readers.nested_columns import may_nest, stored_columns, unnested
from graftwork.data.readers.rejects import Bad, Cell, DataRow, RowSource
from graftwork.errors import DataError, clip
from graftwork.io.extras import extra
from graftwork.io.files import storage_errors
from graftwork.io.gzip_files import FORMATS

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

ROWS_AT_ONCE = 1024
MOST_OF_A_GROUP = 2 << 30  # most bytes of a row group, unpacked
MOST_ROWS = 50_000_000  # most rows of a row group
MOST_OF_A_FOOTER, MOST_NAMED = 64 << 20, 1_000_000  # most bytes and entries of the file's metadata


def opened(path: Path) -> RowSource:
    """Return every row, numbered from 1.

    A cell is a text, unchanged. The column `words` may also hold lists of texts; the columns `labels` also lists,
    numbers and booleans, which are written as in JSON; other columns also images and sounds (`embedded_media`). A row
    with any other value is bad.
    """
    file = _open(path)

    def rows(wanted: Sequence[str], labels: Sequence[str], words: str | None) -> Iterator[DataRow | Bad]:
        number, stored = 0, stored_columns(names, wanted)
        for columns in _batches(file, path, stored):
            for values in zip(*columns, strict=True):
                number += 1
                yield row_of(dict(zip(stored, values, strict=True)), wanted, labels, words, path, number)

    names = file.schema_arrow.names
    return RowSource(header_of(names, lambda columns: next(_batches(file, path, columns), None), path), rows)


def header_of(
    names: Sequence[str], first: Callable[[Sequence[str]], Sequence[Sequence[Any]] | None], path: Path
) -> tuple[str, ...]:
    """Return the columns, those inside a column as the first row has them; `first` reads columns of a first batch."""
    nesting = [name for name in names if may_nest(name)]
    batch = first(nesting) if nesting else None
    known = {name: values[0] for name, values in zip(nesting, batch, strict=True)} if batch else {}
    return tuple(unnested({name: known.get(name) for name in names}, f"{path}:1"))


def row_of(
    row: Mapping[str, Any], wanted: Sequence[str], labels: Sequence[str], words: str | None, path: Path, number: int
) -> DataRow | Bad:
    """Return row `number` of values as cells, or the bad row."""

    def cell(value: Any, name: str) -> Cell:
        found = embedded_file(value) if name not in labels else None
        if found is not None:
            return found
        refuse_several(value, name, f"{path}:{number}")
        is_words = name == words and isinstance(value, list | dict)
        return cell_of(_as_json(value), name, f"{path}:{number}", is_label=name in labels, is_words=is_words)

    try:
        known = row if all(name in row for name in wanted) else unnested(row, f"{path}:{number}")
        cells = [cell(known.get(name), name) for name in wanted]
    except DataError as error:
        return Bad(path, number, error)
    return DataRow(number, tuple(cells))


def _batches(file: ParquetFile, path: Path, stored: Sequence[str]) -> Iterator[list[list[Any]]]:
    """Yield the values of every column of `stored`, a batch of rows at a time."""
    types = [str(file.schema_arrow.field(name).type) for name in stored]
    with whole(path):
        for batch in file.iter_batches(batch_size=rows_at_once(types), columns=list(stored)):
            yield [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in stored]


def rows_at_once(types: Iterable[str]) -> int:
    """Return the rows to hold in memory, by the names of the columns' Arrow types: few if these may hold files."""
    return AT_ONCE if any(name.startswith(("struct", "binary", "large_binary")) for name in types) else ROWS_AT_ONCE


def _as_json(value: Any) -> Any:
    """Return the value with numbers as literals; NaN and infinity, a table's missing numbers, become null."""
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items()}
    if type(value) in (int, float):
        return Literal(repr(value)) if math.isfinite(value) else None
    return value


def _open(path: Path) -> ParquetFile:
    with extra("parquet", "reading Parquet", where=str(path), instead="write the table as CSV (UTF-8)"):
        from pyarrow import parquet
    if path.suffix.lower() in FORMATS:
        raise DataError(
            "the Parquet file is packed",
            where=str(path),
            expected="a file that is not packed: Parquet compresses its columns itself",
            do="unpack it",
        )
    with storage_errors(path), path.open("rb"):
        pass  # so that later errors are about its content
    with whole(path):
        file = parquet.ParquetFile(
            path, thrift_string_size_limit=MOST_OF_A_FOOTER, thrift_container_size_limit=MOST_NAMED
        )
    _refuse_large(path, file)
    return file


def _refuse_large(path: Path, file: ParquetFile) -> None:
    """Raise `DataError` for a row group above the limits, as each row group is unpacked into memory at once."""
    told = file.metadata
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
            "the Parquet file is damaged or incomplete",
            where=str(path),
            got=clip(told, 200),
            expected="a file that can be read to its end",
            do="write it again",
        ) from None
