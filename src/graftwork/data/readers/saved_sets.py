"""Reader of folders that `save_to_disk` of the library `datasets` wrote: one set, or one for each of its splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.data.readers.json_text import whole_json
from graftwork.errors import DataError, clip
from graftwork.io.extras import extra

if TYPE_CHECKING:
    from datasets import Dataset

STATE, SPLIT_LIST = "state.json", "dataset_dict.json"  # of one set, and of a folder with a set for each split
EXPORT = "export the set again, or save it as Parquet: Dataset.to_parquet"


def is_saved(path: Path) -> bool:
    """Return whether `path` is a folder of `save_to_disk`."""
    return (path / SPLIT_LIST).is_file() or ((path / STATE).is_file() and (path / "dataset_info.json").is_file())


def saved_set(path: Path) -> Dataset:
    """Return the set in a folder, memory-mapped. Raises `DataError` for a folder of splits and a damaged one."""
    found = saved_sets(path)
    if (path / SPLIT_LIST).is_file():
        raise DataError(
            "the folder holds a set for each split, none of them called train",
            where=str(path),
            got=clip(", ".join(found)),
            expected="train, and where there are any validation and test",
            do=f"name the folder of the split to train on, such as {path / next(iter(found), '')}",
        )
    return found["train"]


def saved_sets(path: Path) -> Mapping[str, Dataset]:
    """Return split -> its set, memory-mapped; a set without splits is `train`. Raises `DataError`, `MissingExtra`."""
    with extra(
        "hub", "reading sets that were saved to disk", where=str(path), instead="save it as CSV: Dataset.to_csv"
    ):
        from datasets import load_from_disk
    names = _splits(path)
    found = {}
    for name in [""] if names is None else names:
        _require_inside(path / name)
        with _whole(path / name):
            # without the saved output format, such as torch's, which would convert the values
            found[name or "train"] = load_from_disk(str(path / name), keep_in_memory=False).with_format(None)
    return found


def _splits(path: Path) -> list[str] | None:
    """Return the names of the splits; None for a set without."""
    if not (path / SPLIT_LIST).is_file():
        return None
    content = whole_json(path / SPLIT_LIST, EXPORT)
    names = content.get("splits") if isinstance(content, dict) else None
    if not isinstance(names, list) or not names or not all(type(name) is str and _is_plain(name) for name in names):
        _refuse(path / SPLIT_LIST, clip(str(content)), '{"splits": ["train", "test"]}')
    return names


def _require_inside(path: Path) -> None:
    """Raise `DataError` unless the set's files are files of its folder."""
    content = whole_json(path / STATE, EXPORT)
    files = content.get("_data_files") if isinstance(content, dict) else None
    names = [file.get("filename") if isinstance(file, dict) else None for file in files or ()]
    if not names or not all(type(name) is str and _is_plain(name) and (path / name).is_file() for name in names):
        _refuse(path / STATE, clip(str(names)), "the names of its .arrow files")


def _is_plain(name: str) -> bool:
    return Path(name).name == name


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Convert the library's errors about a damaged folder to a `DataError`."""
    try:
        yield
    except Exception as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        _refuse(path, clip(told, 200), "a set that can be read to its end")


def _refuse(path: Path, got: str, expected: str) -> None:
    raise DataError(
        "the saved data set is damaged or incomplete", where=str(path), got=got, expected=expected, do=EXPORT
    ) from None
