"""Reader of a labelled file for the task of a module: finds the columns, yields the rows and refuses unknown labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.in_memory import FOLDER, ROLES, filled_columns, rows_named, write_once
from graftwork.core.kind import AsksPassages, Kind, OfChoices, SettlesTogether
from graftwork.core.kind_settings import settings_of
from graftwork.core.media import MEDIA
from graftwork.core.progress import Progress, silent
from graftwork.core.task import SPLIT_NAMES, Task
from graftwork.data.load import records_of
from graftwork.data.readers.choice_tables import find_choice_columns
from graftwork.data.readers.columns import find_columns, table_of
from graftwork.data.readers.questions import questions_of
from graftwork.data.readers.rejects import Rejects, file_changed, require_apart, write_rejects
from graftwork.data.readers.table import Table
from graftwork.errors import ConfigError, DataError, GraftworkError, clip, nearest
from graftwork.module.file_rows import columns_of_training
from graftwork.module.input_format import check_named, flag
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds
from graftwork.targets.labels import labels_of
from graftwork.units import several

CHECKED_AT_ONCE = 50_000  # rows between two progress reports
INPUTS = ("text", "text_a", "text_b", *MEDIA, "choices")
MOST_LISTED = 10  # maximum number of labels in a message


@dataclass(frozen=True)
class LabelledFile:
    """An open labelled file. `examples` streams its rows at every call; questions about passages are read at once."""

    task: Task  # reader settings; its labels are those in the file
    path: Path
    table: Table | None = None  # the open file; None: questions about passages
    rows: int = 0  # number of good rows, once checked
    rejected: int | None = None  # number of rejected rows, once checked; None: the first is an error
    kind: Kind | None = None  # the kind that settles its targets, once checked; None: that of the task

    def examples(self) -> Iterator[Example]:
        """Yield the good rows. Raises `DataError` for a bad one, and if the file changed since it was checked."""
        bad = Rejects(aside=self.rejected is not None)
        rows = 0
        for example in _read(self, bad):
            rows += 1
            yield example
        if self.rows and (rows, len(bad.found)) != (self.rows, self.rejected or 0):
            raise file_changed(self.path)


def file_of(given: Any, task: Task, columns: Mapping[str, Any], needed: Sequence[str]) -> Path:
    """Return the file of rows for a module's task; rows in memory are written to a file first.

    `columns` is role -> column; of "text" and "label", `needed` names those that no row in memory may lack. Raises
    `ConfigError` for a dictionary of splits, and as `write_once`.
    """
    if isinstance(given, str | Path):
        return Task.find(given)
    splits = [name for listed in SPLIT_NAMES.values() for name in listed]
    if isinstance(given, Mapping) and (found := [name for name in splits if name in given]):
        raise ConfigError(
            "these are splits, and one set of rows is expected",
            got=", ".join(map(str, given)),
            do=f"name one: data[{found[-1]!r}]",
        )
    named, per_word = {role: getattr(task, role) for role in ROLES} | dict(columns), kinds.get(task.kind).per_word
    filled = {column: role for column, role in filled_columns(named, per_word).items() if role in needed}
    return write_once(given, FOLDER, "data", filled, per_word)


def open_labelled(task: Task, path: Path, known: Sequence[str]) -> LabelledFile:
    """Open and check a file (`check_file`) for a task, which names its columns, or uses the usual names."""
    kind: Kind = kinds.get(task.kind)
    table = None if isinstance(kind, AsksPassages) else table_of(path, task.label or "label", kind.per_word)
    return check_file(LabelledFile(_with_columns(task.resolved(labels=()), table), path, table), known)


def labelled_for(
    module: TaskModule, path: Path, named: Mapping[str, Any], rejects: Path | None, progress: Progress = silent
) -> LabelledFile:
    """Open and check a file for a module; columns are those `named`, else those of its training file, else the usual.

    `named` is role -> column, and "label" and settings of the kind as in a task. Bad rows go to `rejects`.

    Raises `ConfigError` for a name that the module does not use, `DataError` for a missing column, an unreadable row or
    a label that is unknown to the module.
    """
    require_apart(str(rejects) if rejects else None, {"labelled": path})
    given = {name: value for name, value in named.items() if value is not None}
    with rows_named({"data": path}, by_role=True), _of_its_kind(module.task.kind):
        task, table = _asked(module, path, given)
        task = _with_columns(task, table)
        _require_roles(task, module, path)
        return check_file(LabelledFile(task, path, table), module.task.labels, rejects, progress)


@contextmanager
def _of_its_kind(kind: str) -> Iterator[None]:
    """Replace the advice in errors to choose another kind, since the module determines the kind."""
    try:
        yield
    except GraftworkError as error:
        if "--kind" not in error.do:
            raise
        do = f"the module answers tasks of kind {kind}: give rows, columns and settings of one"
        raise type(error)(error.what, where=error.where, got=error.got, expected=error.expected, do=do) from error


def check_file(
    file: LabelledFile, known: Sequence[str], rejects: Path | None = None, progress: Progress = silent
) -> LabelledFile:
    """Read the whole file, so that errors in it are found before the prediction starts."""
    file = replace(file, kind=_kind_of_file(file, known))
    bad = Rejects(aside=rejects is not None)
    unknown, first, rows = Counter[str](), "", 0
    listed = frozenset(known)
    try:
        for rows, example in enumerate(_read(file, bad), 1):
            new = {label for label in labels_of(example.target) if listed and label not in listed}
            first = first or (example.id if new else "")
            unknown.update(new)
            if rows % CHECKED_AT_ONCE == 0:
                progress(0.0, f"{rows:,} rows checked")
    finally:
        if rejects is not None:
            write_rejects(rejects, bad.found)
    if unknown:
        raise _unknown_labels(unknown, known, f"{file.path}:{first.rpartition('/')[2]}")
    return replace(file, rows=rows, rejected=len(bad.found) if bad.aside else None)


def _unknown_labels(unknown: Counter[str], known: Sequence[str], where: str) -> DataError:
    listed = [f"{clip(label)} in {several(rows, 'row')}" for label, rows in unknown.most_common(MOST_LISTED)]
    more = f" and {len(unknown) - MOST_LISTED} more" if len(unknown) > MOST_LISTED else ""
    near = nearest(next(iter(unknown)), known)
    mend = f"is {clip(next(iter(unknown)))} called {near!r} there? " if near else ""
    return DataError(
        "labels that the module was not trained on",
        where=where,
        got=", ".join(listed) + more,
        expected=f"one of {', '.join(known)}",
        do=f"{mend}correct or remove these rows: the module cannot predict their labels",
    )


def _kind_of_file(file: LabelledFile, known: Sequence[str]) -> Kind:
    """Return the kind that settles the file's targets: as they are written, if the module knows all its labels."""
    kind = kinds.get(file.task.kind)
    if not isinstance(kind, SettlesTogether):
        return kind
    assert file.table is not None
    read = records_of(file.task, kind, file.table, Rejects(aside=True), raw=True)
    seen = {label for record in read for label in labels_of(record.target)}
    return kind if seen <= set(known) else kind.having_seen(seen, file.task)[0]


def _read(file: LabelledFile, bad: Rejects) -> Iterator[Example]:
    """Yield the good rows, with ids by the line that each starts on; the others go to `bad`."""
    kind = file.kind or kinds.get(file.task.kind)
    if file.table is None:
        yield from questions_of(file.task, file.path, bad)
        return
    for record in records_of(file.task, kind, file.table, bad):
        yield Example(f"line/{record.line}", record.inputs, record.target)


def _asked(module: TaskModule, path: Path, named: Mapping[str, Any]) -> tuple[Task, Table | None]:
    """Return the module's task on this file, with the columns known so far, and the open file."""
    kind, roles, of_kind = kinds.get(module.task.kind), module.roles, settings_of(module.task.kind)
    told = module.read_by
    settings: dict[str, Any] = {name: told[name] for name in of_kind if name in told and name not in INPUTS}
    columns = {role: name for role, name in named.items() if role in INPUTS}
    table, label = None, named.get("label") or told.get("label", "label")
    if isinstance(kind, AsksPassages):
        check_named(columns, (), "context, question and answers in the file")
    else:
        check_named(columns, ("text",) if kind.per_word else roles)
        table = table_of(path, label, kind.per_word)
        header = table.header
        settings |= {role: role for role in roles if role in ("text_a", "text_b", *MEDIA)}
        settings |= {} if columns else columns_of_training([role for role in INPUTS if role in told], told, header)
        settings |= columns_of_training(["label"] if "label" in told else [], told, header)
    settings |= named
    task = Task.from_settings({"name": module.task.name, "data": path, "kind": module.task.kind} | settings)
    if table is not None and (task.label or "label") != label:
        table = table_of(path, task.label or "label", kind.per_word)
    return task, table


def _with_columns(task: Task, table: Table | None) -> Task:
    kind: Kind = kinds.get(task.kind)
    if table is None:
        return task
    return find_choice_columns(task, table) if isinstance(kind, OfChoices) else find_columns(task, table, kind.per_word)


def _require_roles(task: Task, module: TaskModule, path: Path) -> None:
    """Raise `ConfigError` if the columns found are not those of the module's inputs."""
    if set(module.roles) & {"words", "choices"}:
        return
    told = task.as_dict()
    found = tuple(role for role in INPUTS if told.get(role) not in (None, ()))
    if found != module.roles:
        raise ConfigError(
            f"the module reads {' and '.join(module.roles)}",
            where=str(path),
            got=f"a file with columns of {' and '.join(found)}",
            do=f"name the columns: {' '.join(f'{flag(role)} COLUMN' for role in module.roles)}",
        )
