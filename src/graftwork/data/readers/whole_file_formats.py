"""Formats with readers of their own, recognised by suffix or by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.data.readers import annotation_exports, brat, class_folder, conll, hub_datasets, parquet
from graftwork.data.readers.rejects import Bad, DataRow, Named
from graftwork.io.gzip_files import plain_name

ROUNDED = "Spans whose borders cut through a word, widened to whole words"  # its name in the data report


@dataclass(frozen=True)
class FileFormat:
    """The reader of one file format."""

    header_of: Callable[[Path], tuple[str, ...] | None]  # None for a file without rows
    rows: Callable[[Path, Sequence[str], Sequence[str], str | None], Iterator[DataRow | Bad]]
    # (path, the columns wanted, those of the target, the column that may hold lists)


def format_of(path: Path, spans: bool = True) -> FileFormat | None:
    """Return the format of a file, a folder or a hub set; None for CSV, TSV and plain JSONL.

    Without `spans` JSONL is always plain, even with spans of texts.
    """
    if hub_datasets.is_hub(path):
        return HUB
    if path.is_dir():
        return BRAT if brat.is_brat(path) else FOLDER
    if not path.is_file():
        return None
    suffix = Path(plain_name(path)).suffix
    if suffix == ".jsonl":
        return DOCCANO if spans and annotation_exports.spans_key(path) else None
    return BY_SUFFIX.get(suffix)


def _named(rows: Callable[[Path], Iterator[Named | Bad]]) -> Any:
    """Return the `rows` of a `FileFormat` whose reader yields all columns of a row by name."""

    def read(path: Path, wanted: Sequence[str], labels: Sequence[str], words: str | None) -> Iterator[DataRow | Bad]:
        for found in rows(path):
            if isinstance(found, Bad):
                yield found
            else:
                line, cells, rounded, last = found
                yield DataRow(line, tuple(cells[name] for name in wanted), rounded, last)

    return read


BRAT = FileFormat(lambda path: ("tokens", "tags"), _named(brat.rows))
FOLDER = FileFormat(class_folder.header_of, _named(class_folder.rows))
HUB = FileFormat(hub_datasets.header_of, hub_datasets.rows)
DOCCANO = FileFormat(lambda path: ("tokens", "tags"), _named(annotation_exports.doccano_rows))
BY_SUFFIX: Mapping[str, FileFormat] = {
    **dict.fromkeys(conll.SUFFIXES, FileFormat(conll.header_of, _named(conll.rows))),
    ".parquet": FileFormat(parquet.header_of, parquet.rows),
    ".json": FileFormat(annotation_exports.label_studio_header, _named(annotation_exports.label_studio_rows)),
}
WHAT: Mapping[str, str] = {
    **dict.fromkeys(conll.SUFFIXES, "a word per line"),
    ".parquet": "through pyarrow",
    ".json": "the export of Label Studio",
}
