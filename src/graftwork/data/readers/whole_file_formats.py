"""Formats with readers of their own, recognised by suffix or by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from graftwork.data.readers import (
    annotation_exports,
    brat,
    class_folder,
    conll,
    fasttext_lines,
    hub_datasets,
    json_rows,
    label_studio_min,
    parallel_files,
    parquet,
    prodigy,
    spacy_examples,
)
from graftwork.data.readers.json_text import json_value, whole_json
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.rejects import RowSource
from graftwork.data.readers.saved_sets import is_saved
from graftwork.errors import DataError
from graftwork.io.gzip_files import plain_name

ROUNDED = "Spans whose borders cut through a word, widened to whole words"  # its name in the data report
AS_JSON = "export it again; if it has an object on every line, rename the file to .jsonl"


def opened(lines: TextLines, spans: bool = True) -> RowSource | None:
    """Open a file, a folder or a hub set that has such a format; return None for CSV, TSV and plain JSONL.

    With `spans=False`, JSONL is always read as plain rows. Raises `DataError` or `StorageError`.
    """
    path = lines.path
    if hub_datasets.is_hub(path) or (path.is_dir() and is_saved(path)):
        return hub_datasets.opened(path)
    if path.is_dir():
        of_brat = RowSource.named(("tokens", "tags"), partial(brat.rows, path))
        return of_brat if brat.is_brat(path) else class_folder.opened(path)
    suffix = Path(plain_name(path)).suffix
    if not path.is_file() or (suffix == ".jsonl" and not spans):
        return None
    if fasttext_lines.is_fasttext(lines):
        return fasttext_lines.opened(lines)
    if parallel_files.is_parallel(path):
        return parallel_files.opened(path)
    return BY_SUFFIX[suffix](lines) if suffix in BY_SUFFIX else None


def is_class_folder(path: Path) -> bool:
    """Return whether `path` is read as a folder whose folders are classes."""
    return path.is_dir() and not brat.is_brat(path) and not is_saved(path)


def _of_lines(lines: TextLines) -> RowSource | None:
    first = next((line for _, line in lines if isinstance(line, DataError) or line.strip()), "")
    try:
        item = json_value(first, "") if isinstance(first, str) else None
    except DataError:
        item = None
    if isinstance(item, dict) and prodigy.is_prodigy(item):
        return prodigy.opened(lines)
    return spacy_examples.of_lines(lines) if spacy_examples.is_spacy(item) else annotation_exports.doccano(lines)


def _of_json(lines: TextLines) -> RowSource:
    content = whole_json(lines.path, AS_JSON)
    item = next(iter(content), None) if isinstance(content, list) else content
    if spacy_examples.is_spacy(item) or (isinstance(item, dict) and {"classes", "annotations"} <= item.keys()):
        return spacy_examples.of_json(lines.path, content)
    if label_studio_min.is_min(item):
        return label_studio_min.opened(lines.path, content)
    if not isinstance(content, list) or (isinstance(item, dict) and annotation_exports.is_task(item)):
        return annotation_exports.label_studio(lines.path, content)
    return json_rows.opened(lines.path, AS_JSON)


BY_SUFFIX: Mapping[str, Callable[[TextLines], RowSource | None]] = {
    ".jsonl": _of_lines,
    ".json": _of_json,
    **dict.fromkeys(conll.SUFFIXES, conll.opened),
    ".parquet": lambda lines: parquet.opened(lines.path),
    spacy_examples.BINARY: lambda lines: spacy_examples.of_binary(lines.path),
}
WHAT: Mapping[str, str] = {
    **dict.fromkeys(conll.SUFFIXES, "a word per line"),
    ".parquet": "through pyarrow",
    ".json": "a list of rows, the export of Label Studio, or examples of spaCy",
    spacy_examples.BINARY: "through spaCy",
}
