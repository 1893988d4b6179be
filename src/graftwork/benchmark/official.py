"""Conversion of a suite's official files to JSONL, which tasks read: per line a row's inputs by role and its label."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftwork.core.media import MEDIA
from graftwork.core.suite import OfficialTask, Row, Source
from graftwork.core.task import Task
from graftwork.errors import DataError
from graftwork.io.files import digest, file_digest, storage_errors, writing


@dataclass(frozen=True)
class ConvertedTask:
    """A task of a suite with its converted files."""

    official: OfficialTask
    task: Task
    tests: dict[str, Path]  # name in the table -> file of labelled test rows
    broken: int  # number of rows left out because they are malformed in the official labelled files


def write_task(official: OfficialTask, folder: Path, limit: int | None) -> ConvertedTask:
    """Write `train.jsonl` and a file per other split into `folder`, at most `limit` rows each, chosen by content hash.

    Raises `DataError` with file:line of the official file, or for a file without rows.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    train = folder / "train.jsonl"
    broken = _write(official.train, train, limit)
    validation = None
    if official.validation is not None:
        validation = folder / "validation.jsonl"
        broken += _write(official.validation, validation, limit)
    named = {name: source for name, source in official.tests.items() if source is not None}
    tests = {name: folder / f"{name}.jsonl" for name in named}
    broken += sum(_write(source, tests[name], limit) for name, source in named.items())
    task = Task(
        name=official.name,
        data=train,
        validation=validation,
        test=next(iter(tests.values()), None),
        kind=official.kind,
        metrics=official.metrics,
        settings={} if official.positive is None else {"positive": official.positive},
    )
    return ConvertedTask(official, task, tests, broken)


def _write(source: Source, path: Path, limit: int | None) -> int:
    """Write the rows of an official file to `path`; return the number of malformed rows, which are left out."""
    broken, rows = 0, 0

    def whole() -> Iterator[Row]:
        nonlocal broken
        for row in source.read():
            if row is None:
                broken += 1
            else:
                yield row

    with writing(path) as stream:
        for row in whole() if limit is None else _sample_by_hash(whole(), limit):
            rows += 1
            stream.write(f"{json.dumps(dict(row), ensure_ascii=False)}\n".encode())
        if not rows:
            raise DataError("the file has no rows", where=str(source.path), do="check that it was written whole")
    return broken


def _sample_by_hash(rows: Iterator[Row], limit: int) -> list[Row]:
    """Return the rows with the smallest content hashes, in file order; the choice does not depend on the order."""
    least = heapq.nsmallest(limit, enumerate(rows), key=lambda pair: digest(_content(pair[1])))
    return [row for _, row in sorted(least, key=lambda pair: pair[0])]


def _content(row: Row) -> dict[str, Any]:
    """Return a row with the paths of media files replaced by their hashes."""
    return {role: file_digest(Path(cell)) if role in MEDIA else cell for role, cell in row.items()}
