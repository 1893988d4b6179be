"""Data in memory, written to a file that is named by its content, so that runs on them are like any others.

Equal data give the same file, and the same examples and run ids as a CSV with the same cells. Worker processes read the
file, and receipts name it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graftwork.core.table_columns import COLUMNS, TARGETS, MemoryTable, is_missing, table_in_memory
from graftwork.errors import ConfigError, DataError, GraftworkError, UnknownName, clip
from graftwork.io.files import digest, file_digest, storage_errors, write_bytes

FOLDER, STEM = "frames", "data-"  # the files are frames/data-<hash>.jsonl
OF_NAME, OF_TASK = 12, 6  # hexadecimal digits of the content's hash in a file's name, and in that of its task

FLAG = re.compile(  # a flag and, where one follows, its value
    r"--([a-z][a-z-]*[a-z])"
    r"(?: ([A-Z]+\b|\d+(?:\.\d+)?(?= )|(?!and\b)[^\s;?)]+?(?=[,.]?(?:[;?)]|$| or | --))))?"
)
SWITCHES = ("drop_leaks", "realign", "unanswerable")  # settings without a value on the command line
ROLES = {"text", "text_a", "text_b", "image", "sound", "label"}  # settings that name a column


def beside(runs: str | Path) -> Path:
    """Return the folder for data in memory that belongs to a folder of runs."""
    return Path(runs).parent / FOLDER


def name_of(path: Path) -> str:
    """Return the name of a task on such a file, `data-9b94a3`: boards of different data don't overwrite each other."""
    return path.name[: len(STEM) + OF_TASK]


@contextmanager
def rows_named(files: Mapping[str, Path], by_role: bool = False) -> Iterator[None]:
    """Rewrite errors in the block if any of `files` holds data in memory: rows for lines, Python arguments for flags.

    With `by_role` columns are given as `columns={"text": "COLUMN"}`.
    """
    kept_files = {name: path for name, path in files.items() if re.match(f"{STEM}[0-9a-f]{{{OF_NAME}}}", path.name)}
    try:
        yield
    except GraftworkError as error:
        for name, path in kept_files.items():
            file, _, line = error.where.partition(f"{path}:")
            if str(path) in error.where:
                told = name if len(kept_files) > 1 else "data"
                of_row = not file and line.isdigit() and not error.what.startswith("no column")
                error.where = f"{told}: row {int(line) - 1}" if of_row else told
        if kept_files:
            error.expected, error.do = in_python(error.expected, by_role), in_python(error.do, by_role)
        raise


def in_python(text: str, by_role: bool = False) -> str:
    """Replace flags in a sentence: `--text COLUMN` by `text="COLUMN"`, if `by_role` by `columns={"text": "COLUMN"}`."""

    def argument(flag: re.Match[str]) -> str:
        name, value = flag[1].replace("-", "_"), flag[2]
        if name in SWITCHES:
            return f"{name}=True" + (f" {value}" if value else "")
        told = "…" if not value else value if value[0].isdigit() else json.dumps(value, ensure_ascii=False)
        return f'columns={{"{name}": {told}}}' if by_role and name in ROLES else f"{name}={told}"

    return FLAG.sub(argument, text)


def with_names(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a task with column names and labels as strings: "0" for column 0, "1" for class 1.

    Raises `ConfigError` for several columns where one is expected.
    """
    named = dict(flags)
    for name in {*ROLES, "positive"} & flags.keys():
        if name != "label" and isinstance(flags[name], list | tuple):
            raise ConfigError(
                f"{name} names one column", got=clip(repr(flags[name])), do="of pairs give text_a=… and text_b=…"
            )
        if flags[name] is not None and not isinstance(flags[name], str | list | tuple):
            named[name] = str(flags[name])
    if isinstance(flags.get("labels"), list):
        named["labels"] = [str(label) for label in flags["labels"]]
    return named


def filled_columns(flags: Mapping[str, Any], per_word: bool) -> dict[str, str]:
    """Return column -> "text" or "label", for the columns that must have a value in every row.

    They are the columns that `flags` name, else those with the usual names.
    """
    texts = [flags[role] for role in ("text", "text_a", "text_b") if flags.get(role)]
    label = flags.get("label") or TARGETS[per_word]
    labels = [label, *label.split(",")] if isinstance(label, str) else [str(name) for name in label]
    texts = texts or [*COLUMNS[per_word], "text_a", "text_b"]
    return dict.fromkeys(map(str.strip, labels), "label") | dict.fromkeys(texts, "text")


def splits_of(data: Any, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return split -> data: a dictionary of splits, with keys as in `names`, is divided; other data are all train.

    Raises `ConfigError` for a dictionary of splits with other keys, or without train.
    """
    known = {name: split for split, listed in names.items() for name in listed}
    if not isinstance(data, Mapping) or is_of_datasets(data) or not any(name in known for name in data):
        return {"train": data}
    for name in data:
        if name not in known:
            raise UnknownName("split", str(name), known, where="data", else_do="leave it out")
    found = {known[name]: one for name, one in data.items()}
    if "train" not in found or len(found) < len(data):
        raise ConfigError(
            "the dictionary has no train" if "train" not in found else "the dictionary has a split twice",
            where="data",
            got=", ".join(data),
            expected="train, and where there are any validation and test",
            do='name the rows to train on: {"train": …}',
        )
    return found


def write_once(data: Any, folder: str | Path, what: str, needed: Mapping[str, str], per_word: bool) -> Path:
    """Write `data` to a file in `folder`, unless it is there, and return its path.

    A table becomes JSONL, every cell the text that a CSV would have; lists stay lists. A set of the library `datasets`
    is saved as a folder. `what` is the name of the data in messages; a row that lacks a value in a column of `needed`,
    as `filled_columns` returns them, is refused.

    Raises `ConfigError` or `DataError` for data that are no table, `StorageError` if the file can't be written.
    """
    if is_of_datasets(data):
        return _saved(data, Path(folder))
    table = table_in_memory(data, what, per_word)
    _require_filled(table, needed, what)
    content = "".join(_lines(table, what)).encode()
    path = Path(folder) / f"{STEM}{hashlib.sha256(content).hexdigest()[:OF_NAME]}.jsonl"
    if not path.is_file():
        write_bytes(path, content)
    return path


def _lines(table: MemoryTable, what: str) -> list[str]:
    names, lines = list(table.columns), []
    for row, cells in enumerate(zip(*table.columns.values(), strict=True)):
        line = json.dumps({name: _cell(cell) for name, cell in zip(names, cells, strict=True)}, ensure_ascii=False)
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "half of a character: a surrogate without its other half",
                where=f"{what}: {table.place(row)}",
                got=clip(line[max(0, error.start - 20) : error.end + 20]),
                expected="text that UTF-8 can write",
                do='mend the text: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")',
            ) from None
        lines.append(line + "\n")
    return lines


def _cell(value: Any) -> Any:
    """Return a cell as JSON: None where it is missing, a list of texts, the value of a dictionary, else its text."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _inside(item) for name, item in value.items()}
    if (items := _items(value)) is not None:
        return [_inside(item) if isinstance(item, Mapping) else _cell(item) for item in items]
    return str(value)


def _inside(value: Any) -> Any:
    """Return a value inside a dictionary as JSON; other than in a cell, numbers stay numbers."""
    if isinstance(value, Mapping):
        return {str(name): _inside(item) for name, item in value.items()}
    if (items := _items(value)) is not None:
        return [_inside(item) for item in items]
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, bool | int | float) and not is_missing(value) else _cell(value)


def _items(value: Any) -> Sequence[Any] | None:
    """Return the items of a list, a tuple, a set or an array; None for any other value."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, list | tuple):
        return value
    return list(value) if getattr(value, "ndim", 0) == 1 or hasattr(value, "to_list") else None


def _require_filled(table: MemoryTable, needed: Mapping[str, str], what: str) -> None:
    """Raise `DataError` for the first row that lacks a value in one of these columns, or has bytes for a text."""
    columns = {name: (role, table.columns[name]) for name, role in needed.items() if name in table.columns}
    for name, (_, cells) in columns.items():
        row = next((row for row, cell in enumerate(cells) if isinstance(cell, bytes)), None)
        if row is not None:
            raise DataError(
                f"the column {clip(name)} holds bytes",
                where=f"{what}: {table.place(row)}",
                got=clip(repr(cells[row])),
                expected="texts",
                do=f'decode them: frame["{name}"].str.decode("utf-8")',
            )
    empty = {
        name: rows
        for name, (role, cells) in columns.items()
        if (rows := [row for row, cell in enumerate(cells) if is_missing(cell) or (role == "text" and _is_blank(cell))])
    }
    if not empty:
        return
    name, first = min(((name, rows[0]) for name, rows in empty.items()), key=lambda found: found[1])
    counts = ", ".join(f"{len(rows):,} of {len(table):,} in {clip(column)}" for column, rows in empty.items())
    raise DataError(
        f"the column {clip(name)} has no value here",
        where=f"{what}: {table.place(first)}",
        got=f"{table.columns[name][first]!r}; missing: {counts}",
        expected="a text and a label in every row",
        do=f"fill them in, or drop such rows: frame.dropna(subset={list(empty)}); a blank text counts as missing",
    )


def _is_blank(cell: Any) -> bool:
    return isinstance(cell, str) and not cell.strip()


def is_of_datasets(data: Any) -> bool:
    """Return whether `data` is a set, or a dictionary of sets, of the library `datasets`."""
    library = sys.modules.get("datasets")
    if library is None:
        return False
    if isinstance(data, library.IterableDataset | library.IterableDatasetDict):
        raise ConfigError(
            "a set that streams has no end to wait for",
            got=type(data).__name__,
            expected="a Dataset or a DatasetDict",
            do="load it without streaming=True, or take its first rows: Dataset.from_list(list(set.take(10000)))",
        )
    return isinstance(data, library.Dataset | library.DatasetDict)


def _saved(data: Any, folder: Path) -> Path:
    """Save a set of `datasets` below `folder`, named by the content of its files."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as scratch:
            written = Path(scratch) / "set"
            data.save_to_disk(str(written))
            files = sorted(file for file in written.rglob("*") if file.suffix == ".arrow" or file.name in _DESCRIBES)
            content = digest([[file.relative_to(written).as_posix(), file_digest(file)] for file in files])
            path = folder / f"{STEM}{content[:OF_NAME]}"
            if not path.exists():
                shutil.move(written, path)
    return path


_DESCRIBES = ("dataset_info.json", "dataset_dict.json")
