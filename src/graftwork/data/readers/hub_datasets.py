"""Reader of data sets by the library `datasets`: `hub:NAME`, `hub:NAME:CONFIG` or `hub:NAME:CONFIG:SPLIT`.

NAME may also be a local folder of data files, or one that `save_to_disk` wrote, which needs no `hub:`. Class numbers
are replaced by class names. No code of a data set is run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.task import SPLIT_NAMES, SPLITS, Task
from graftwork.data.readers.nested_columns import stored_columns
from graftwork.data.readers.parquet import header_of, row_of, rows_at_once
from graftwork.data.readers.rejects import Bad, DataRow, RowSource
from graftwork.data.readers.saved_sets import is_saved, saved_set, saved_sets
from graftwork.errors import ConfigError, DataError, StorageError, UnknownName, clip
from graftwork.io.extras import extra
from graftwork.pretrained.download_policy import may_fetch

if TYPE_CHECKING:
    from datasets import Dataset

SCHEME = "hub:"
COMMIT = re.compile(r"@([0-9a-f]{40})/")  # the commit in the URL of a hub file
HIDDEN = -1  # class number of a row whose label is not published


def is_hub(path: Path) -> bool:
    """Return whether `path` names a set of the hub and not a file."""
    return str(path).startswith(SCHEME)


def with_splits(task: Task) -> Task:
    """Return `task` with a split in each hub path: train, and validation and test if their labels are published.

    Files that the task names take precedence over the set's own splits. Raises `DataError` for a set without train.
    """
    if not is_hub(task.data) or len(_parts(task.data)) == 3:
        return task
    name, *config = _parts(task.data)
    found = _sets(name, config[0] if config else None)
    if "train" not in found:
        raise DataError(
            "the data set has no split called train",
            where=str(task.data),
            got=", ".join(found),
            do="take a set with one, or save its rows to a file",
        )
    own = {
        split: next((other for other in SPLIT_NAMES[split] if other in found and not _hidden(found[other])), None)
        for split in SPLITS[1:]
    }
    given = (task.validation, task.test)
    paths = {
        split: path
        for split, other in own.items()
        if other and getattr(task, split) is None and (path := _path(name, config, other)) not in given
    }
    return task.resolved(data=_path(name, config, "train"), **paths)


def opened(path: Path) -> RowSource:
    """Return every row, numbered from 1. A row is bad if its class is not published, or a cell is not text."""
    found = _set(path)
    header = header_of(
        found.column_names, lambda names: list(_as_stored(found.select_columns(names))[:1].values()), path
    )
    return RowSource(header, functools.partial(_rows, path, found))


def _rows(
    path: Path, whole: Dataset, wanted: Sequence[str], labels: Sequence[str], words: str | None
) -> Iterator[DataRow | Bad]:
    stored = stored_columns(whole.column_names, wanted)
    found = _as_stored(whole.select_columns(stored))
    names = {column: given for column in stored if (given := _class_names(found.features[column])) is not None}
    number, size = 0, rows_at_once(str(field.type) for field in found.data.schema)
    for batch in found.iter(batch_size=size):
        for cells in zip(*(batch[column] for column in stored), strict=True):
            number += 1
            try:
                where = f"{path}:{number}"
                values = {name: _named(cell, names.get(name), where) for cell, name in zip(cells, stored, strict=True)}
            except DataError as error:
                yield Bad(path, number, error)
            else:
                yield row_of(values, wanted, labels, words, path, number)


def has_labels(path: Path) -> bool:
    """Return whether the labels of a set are published: some test splits have none."""
    return not _hidden(_set(path))


def hub_commit(path: Path) -> str | None:
    """Return the commit of the hub repository that a set was read from; None if its files do not record it."""
    try:
        found = COMMIT.search(" ".join(map(str, _set(path).info.download_checksums or ())))
    except StorageError:
        return None
    return found[1] if found else None


def _parts(path: Path) -> list[str]:
    """Return name, config and split, as far as they are given."""
    parts = str(path).removeprefix(SCHEME).split(":")
    if len(parts) > 3 or not all(parts):
        raise ConfigError(
            "the name is not one of a hub data set", got=str(path), expected="hub:NAME, hub:NAME:CONFIG or …:SPLIT"
        )
    return parts


def _path(name: str, config: Sequence[str], split: str) -> Path:
    return Path(f"{SCHEME}{name}:{config[0] if config else 'default'}:{split}")


def _set(path: Path) -> Dataset:
    if not is_hub(path):
        return saved_set(path)
    parts = _parts(path)
    name, config, split = parts + ["default", "train"][len(parts) - 1 :]
    found = _sets(name, None if config == "default" else config)
    if split not in found:
        raise UnknownName("split", split, found, where=str(path))
    return found[split]


@functools.lru_cache(maxsize=2)
def _sets(name: str, config: str | None) -> Mapping[str, Dataset]:
    """Map each split to its rows, memory-mapped."""
    where = f"{SCHEME}{name}" + (f":{config}" if config else "")
    if is_saved(Path(name)):
        return saved_sets(Path(name))
    with extra("hub", "reading sets of the hub", where=where):
        from datasets import config as settings
        from datasets import load_dataset
    if not (Path(name).is_dir() or settings.HF_HUB_OFFLINE or may_fetch(name)):
        raise StorageError(
            "a file that names a set of the hub starts no download",
            where=where,
            do=f"if you trust it, fetch it: graft data {where}; HF_HUB_OFFLINE=1 then reads that copy",
        )
    try:
        found: Mapping[str, Dataset] = load_dataset(name, config)
    except Exception as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise StorageError(
            f"the data set cannot be loaded: {told[0]}",
            where=where,
            expected="hub:NAME, or hub:NAME:CONFIG where a set has several",
            do="check the name, and the network",
        ) from error
    return found


def _class_names(feature: Any) -> list[str] | None:
    """Return the class names of a column, or of a list column's items; None where it has no classes."""
    inner = getattr(feature, "feature", feature)
    names: list[str] | None = getattr(inner, "names", None)
    return names


def _named(cell: Any, names: list[str] | None, where: str) -> Any:
    if names is None or cell is None:
        return cell
    if isinstance(cell, list):
        return [_named(item, names, where) for item in cell]
    if cell == HIDDEN:
        raise DataError(
            "the label is not published",
            where=where,
            got=str(cell),
            expected="the number of a class",
            do="take a split that has labels; or set such rows aside: --rejects FILE",
        )
    if not (type(cell) is int and 0 <= cell < len(names)):
        raise DataError(
            "the number is not a class of the data set",
            where=where,
            got=clip(repr(cell)),
            expected=f"a number from 0 to {len(names) - 1}",
            do="mend the row or remove it",
        )
    return names[cell]


def _hidden(found: Dataset) -> bool:
    """Return whether a class column's first rows have no class: the split's labels are not published."""
    columns = [column for column, feature in found.features.items() if getattr(feature, "names", None) is not None]
    first = found.select_columns(columns)[:100]  # without images and sounds, which would be decoded
    return any(set(first[column]) == {HIDDEN} for column in columns)


def _as_stored(found: Dataset) -> Dataset:
    """Return the set with images and sounds as their files, and not decoded."""
    features = {name: _undecoded(feature) for name, feature in found.features.items()}
    for name, feature in features.items():
        found = found.cast_column(name, feature) if feature is not None else found
    return found


def _undecoded(feature: Any) -> Any:
    """Return a feature, or a list of features, with decoding turned off; None for one that is never decoded."""
    if getattr(feature, "decode", False) is True:
        return replace(feature, decode=False)
    inner = _undecoded(feature.feature) if hasattr(feature, "feature") else None
    return replace(feature, feature=inner) if inner is not None else None
