"""Formats with readers of their own, recognised by suffix or by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.data.readers import (
    annotation_exports,
    brat,
    class_folder,
    conll,
    fasttext_lines,
    hub_datasets,
    label_studio_min,
    parallel_files,
    parquet,
    prodigy,
    saved_sets,
    spacy_examples,
)
from graftwork.data.readers.json_text import first_item, json_value
from graftwork.data.readers.lines import each_line
from graftwork.data.readers.rejects import Bad, DataRow, Named
from graftwork.errors import DataError
from graftwork.io.gzip_files import plain_name

ROUNDED = "Spans whose borders cut through a word, widened to whole words"  # its name in the data report


@dataclass(frozen=True)
class FileFormat:
    """The reader of one file format."""

    header_of: Callable[[Path], tuple[str, ...] | None]  # None for a file without rows
    rows: Callable[[Path, Sequence[str], Sequence[str], str | None], Iterator[DataRow | Bad]]
    # (path, the columns wanted, those of the target, the column that may hold lists)
    told: Callable[[Path], str] = lambda path: ""  # what was read, in words for the data report; "" where that is plain


def format_of(path: Path, spans: bool = True) -> FileFormat | None:
    """Return the format of a file, a folder or a hub set; None for CSV, TSV and plain JSONL.

    Without `spans` JSONL is always plain, even with spans of texts.
    """
    if hub_datasets.is_hub(path):
        return HUB
    if path.is_dir():
        return BRAT if brat.is_brat(path) else HUB if saved_sets.is_saved(path) else FOLDER
    if not path.is_file():
        return None
    suffix = Path(plain_name(path)).suffix
    if suffix == ".jsonl":
        return _of_lines(path) if spans else None
    if suffix == ".json":
        return _of_json(path)
    if suffix in NO_TABLES and fasttext_lines.is_fasttext(path):
        return FASTTEXT
    return PARALLEL if parallel_files.is_parallel(path) else BY_SUFFIX.get(suffix)


def told(path: Path) -> str:
    """Return a file's name for the data report, with what was read from it where the name does not say it."""
    found = format_of(path)
    what = found.told(path) if found is not None else ""
    return f"{path.name} ({what})" if what else path.name


def _of_lines(path: Path) -> FileFormat | None:
    first = next((line for _, line in each_line(path) if isinstance(line, DataError) or line.strip()), "")
    item = json_value(first, "") if isinstance(first, str) else None
    if isinstance(item, dict) and prodigy.is_prodigy(item):
        return PRODIGY
    if spacy_examples.is_spacy(item):
        return SPACY
    return DOCCANO if annotation_exports.spans_key(path) else None


def _of_json(path: Path) -> FileFormat:
    item = first_item(path)
    if spacy_examples.is_spacy(item) or (isinstance(item, dict) and {"classes", "annotations"} <= item.keys()):
        return SPACY
    return STUDIO_MIN if label_studio_min.is_min(item) else STUDIO


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
PRODIGY = FileFormat(prodigy.header_of, _named(prodigy.rows), prodigy.told)
SPACY = FileFormat(spacy_examples.header_of, _named(spacy_examples.rows), spacy_examples.told)
FASTTEXT = FileFormat(lambda path: ("text", "label"), _named(fasttext_lines.rows), lambda path: "lines of fastText")
PARALLEL = FileFormat(parallel_files.header_of, _named(parallel_files.rows), parallel_files.told)
STUDIO = FileFormat(annotation_exports.label_studio_header, _named(annotation_exports.label_studio_rows))
STUDIO_MIN = FileFormat(label_studio_min.header_of, label_studio_min.rows, label_studio_min.told)
SPANS_OF_LINES = (DOCCANO, PRODIGY, SPACY)  # JSONL that is read in another way where the label is another key
NO_TABLES = ("", ".txt", ".train", ".valid", ".test", ".label")  # suffixes that fastText's files are given
BY_SUFFIX: Mapping[str, FileFormat] = {
    **dict.fromkeys(conll.SUFFIXES, FileFormat(conll.header_of, _named(conll.rows))),
    ".parquet": FileFormat(parquet.header_of, parquet.rows),
    spacy_examples.BINARY: SPACY,
}
WHAT: Mapping[str, str] = {
    **dict.fromkeys(conll.SUFFIXES, "a word per line"),
    ".parquet": "through pyarrow",
    ".json": "the export of Label Studio, or examples of spaCy",
    spacy_examples.BINARY: "through spaCy",
}
