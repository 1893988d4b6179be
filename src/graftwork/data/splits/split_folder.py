"""Reader of folders of splits: `train.tsv`, `dev.tsv`, `test.tsv`, or `train`, `val`, `test` with class folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from graftwork.core.task import SPLIT_NAMES, SPLITS, Task
from graftwork.data.readers.brat import is_brat
from graftwork.data.readers.class_folder import labelled_files
from graftwork.data.readers.fasttext_lines import is_fasttext
from graftwork.data.readers.hub_datasets import has_labels, is_hub
from graftwork.data.readers.lines import TextLines
from graftwork.data.readers.parallel_files import is_parallel, sides
from graftwork.data.readers.saved_sets import is_saved
from graftwork.data.readers.table import suffix_of
from graftwork.data.readers.whole_file_formats import is_class_folder
from graftwork.errors import ConfigError, DataError
from graftwork.io.files import storage_errors
from graftwork.io.gzip_files import plain_name

_SPLIT_OF = {name: split for split, names in SPLIT_NAMES.items() for name in names}
_PART = re.compile(r"(.+)-[0-9]{5}-of-[0-9]{5}")  # the `datasets` library's names of a split's files


def with_split_files(task: Task) -> Task:
    """Return `task` with the files, or folders, of its splits if its data is a folder of them; else unchanged.

    Paths that the task names take precedence over the folder's. Raises `DataError` for a folder with two files for
    one split, or with other splits and no train.
    """
    if is_hub(task.data) or not task.data.is_dir() or is_brat(task.data):
        return task
    found: dict[str, Path] = {}
    for split, path in _splits_in(task.data):
        if split in found:
            if path in sides(found[split]).values():  # another side of parallel files
                continue
            raise DataError(
                f"the folder has two files for {split}",
                where=str(task.data),
                got=f"{found[split].name} and {path.name}",
                expected="one for each split",
                do="name the files that are meant instead of the folder: DATA, --validation and --test",
            )
        found[split] = path
    if not found:
        return task
    if "train" not in found:
        raise DataError(
            "the folder has no file called train",
            where=str(task.data),
            got=", ".join(path.name for path in found.values()),
            expected="train.csv or the like, and where there are any validation.csv and test.csv",
            do=f"name the file to train on: {next(iter(found.values()))}, if it is that one",
        )
    given = {"validation": task.validation, "test": task.test}
    return task.resolved(data=found["train"], **{name: given[name] or found.get(name) for name in SPLITS[1:]})


def require_outside(task: Task, made: Iterable[str | Path]) -> None:
    """Raise `ConfigError` if a folder that will be `made` is among the task's class folders, and would be read as one.

    Raises `DataError` if the task's folder has no class folders.
    """
    task = with_split_files(task)
    for source in (task.data, task.validation, task.test):
        if source is None or not is_class_folder(source):
            continue
        for folder in made:
            here, whole = Path(folder).resolve(), source.resolve()
            if not here.is_relative_to(whole) or any(part[0] == "." for part in here.relative_to(whole).parts):
                continue  # hidden folders are ignored
            labelled_files(source)  # raises if it has no class folders
            raise ConfigError(
                "runs, boards and banks would lie among the class folders",
                where=str(source),
                got=str(folder),
                do="start in another folder, or give --runs, --out and --bank outside of it",
            )


def _splits_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield split and path of the files named after splits, sorted by name; without such files, of folders."""
    with storage_errors(folder):
        entries = sorted(folder.iterdir())
        files = [(split, path) for path in entries if path.is_file() and (split := _split_of(path))]
        if files:
            yield from files
            return
        for path in entries:
            split = _SPLIT_OF.get(path.name.lower())
            if not (split and path.is_dir()):
                continue
            if is_saved(path):
                if split == SPLITS[0] or has_labels(path):
                    yield split, path
            elif is_brat(path) or any(inner.is_dir() for inner in path.iterdir()):
                yield split, path


def _split_of(path: Path) -> str | None:
    """Return the split that a file is named after, with any readable suffix."""
    name, suffix = plain_name(path), suffix_of(path)
    stem = name.removesuffix(suffix if suffix is not None else Path(name).suffix)
    part = _PART.fullmatch(stem)
    split = _SPLIT_OF.get(part[1] if part else stem)
    # a format without a suffix of its own is recognised by its content
    return split if suffix is not None or (split and (is_parallel(path) or is_fasttext(TextLines(path)))) else None
