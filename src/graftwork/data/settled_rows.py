"""Settling of targets (`Kind.settle`) by kinds that must first see every label of a data set, such as tagging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.core.kind import Kind, SettlesTogether
from graftwork.core.task import Task
from graftwork.data.readers.rejects import Bad, Rejects
from graftwork.errors import DataError
from graftwork.targets.labels import labels_of

if TYPE_CHECKING:
    from graftwork.data.load import Record


def settled(
    kind: SettlesTogether,
    task: Task,
    read: Mapping[str, Sequence[Record]],
    files: Mapping[str, Path],
    rejects: Mapping[str, Rejects],
) -> tuple[Kind, Task, dict[str, list[Record]]]:
    """Return the kind adapted to the labels of all files, the task in its notation, and each file's settled rows.

    A row whose target the kind refuses goes to `rejects`. Raises its `DataError` if these set no rows aside, and a
    `DataError` if no row of a file remains.
    """
    seen = {label for records in read.values() for record in records for label in labels_of(record.target)}
    sighted, task = kind.having_seen(seen, task)
    return sighted, task, {name: _settled(sighted, task, read[name], files[name], rejects[name]) for name in read}


def _settled(kind: Kind, task: Task, records: Sequence[Record], path: Path, rejects: Rejects) -> list[Record]:
    rewrites = isinstance(kind, SettlesTogether) and bool(kind.rewrites)
    kept = []
    for record in records:
        try:
            target, mended = kind.settle(record.target, record.inputs, task, f"{path}:{record.line}")
        except DataError as error:
            rejects.refuse(Bad(path, record.line, error, record.last))
            continue
        if rewrites:
            changed = sum(before != after for before, after in zip(record.target, target, strict=True)) - mended
            kept.append(replace(record, target=target, mended=mended, rewritten=max(0, changed)))
        else:
            kept.append(replace(record, target=target, mended=mended) if mended else record)
    rejects.found.sort(key=lambda bad: bad.line)
    rejects.require_rows(path, len(kept))
    return kept
