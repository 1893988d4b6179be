"""Loading of a task's data set: read the files, find the columns, parse the targets, draw missing splits."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from graftwork.core.example import Example, plain, text_of
from graftwork.core.in_memory import rows_named
from graftwork.core.kind import AsksPassages, Kind, OfChoices, Scales, ScoresByInputs, SettlesTogether, WritesTexts
from graftwork.core.media import MEDIA
from graftwork.core.metric import require_scorable
from graftwork.core.task import SPLITS, Dataset, Split, Task
from graftwork.data.readers.choice_tables import choice_rows, find_choice_columns
from graftwork.data.readers.class_folder import media_of, require_heard
from graftwork.data.readers.columns import column_of, find_columns, table_of
from graftwork.data.readers.embedded_media import text_cell
from graftwork.data.readers.hub_datasets import with_splits
from graftwork.data.readers.label_columns import names_of, with_labels
from graftwork.data.readers.layout_notes import layout_notes
from graftwork.data.readers.questions import read_questions
from graftwork.data.readers.rejects import Bad, DataRow, Rejects, require_apart, write_rejects
from graftwork.data.readers.separators import has_decimal_commas, with_points
from graftwork.data.readers.table import Table
from graftwork.data.readers.whole_file_formats import ROUNDED
from graftwork.data.readers.word_cells import check_words, refuse_numbered
from graftwork.data.readers.written_columns import with_references
from graftwork.data.settled_rows import settled
from graftwork.data.splits.content_split import (
    draw,
    made_told,
    require_drawn,
    require_enough,
    salt_of,
    seed_words,
    with_every_label,
)
from graftwork.data.splits.split_folder import with_split_files
from graftwork.errors import ConfigError, DataError, clip, nearest
from graftwork.io.files import canonical
from graftwork.registry import kinds, metrics
from graftwork.targets.labels import is_number, labels_of
from graftwork.units import ERROR_RATES, several

FRACTIONS = {"test": 0.2, "validation": 0.1}  # shares of the training file's rows drawn where no file is given
FEWEST_ROWS = 10  # fewest rows to draw splits from
MOST_LISTED = 20  # most labels in a message
AS_NUMBERS = "if the labels are amounts: --kind regression; else mend or remove the row, or add others of its class"


@dataclass(frozen=True, slots=True)
class Record:
    """A row as read, before it is assigned to a split."""

    line: int
    row: int  # 1 is the first data row
    inputs: Mapping[str, Any]
    target: Any
    mended: int  # number of repaired places of the target
    rounded: int = 0  # number of its spans that were widened to whole words
    last: int = 0  # its last line; 0 where the row has no lines of its own
    rewritten: int = 0  # number of valid parts of the target that were converted to another notation


def load(task: Task, checked: bool = True) -> Dataset:
    """Read, check, split and encode the data of `task`.

    Splits without a file are drawn from the training file: 20 % test, 10 % validation. Texts are passed on unchanged.
    If the task has `rejects`, bad rows are written there and the others are used. With `checked=False`, for data that
    another process has already reported on, nothing is written and only rows set aside or dropped are counted. Raises
    `ConfigError` for a setting that contradicts the task or its files, `DataError` for a file with invalid content,
    `StorageError` for an unreadable file.
    """
    with rows_named(task.files):
        return _loaded(task, checked)


def _loaded(task: Task, checked: bool) -> Dataset:
    kind = kinds.get(task.kind)
    task = _with_known_metrics(task)
    task = with_splits(with_split_files(task))
    files = task.files
    _require_different(files)
    require_drawn(task, files)
    require_apart(task.rejects, files)
    rejects = {name: Rejects(aside=task.rejects is not None) for name in files}
    if isinstance(kind, AsksPassages):
        with _kept_in(task, rejects, checked):
            asked = read_questions(task, files, rejects)
        found, dropped = _without_leaks(task, kind, asked.examples)
        task = kind.resolve(task, [example.target for example in found["train"]])
        return _dataset(task, kind, found, files, asked.made, asked.mended, dropped, checked, rejects)
    table = table_of(task.data, task.label, kind.per_word)
    of_choices = isinstance(kind, OfChoices)
    task = find_choice_columns(task, table) if of_choices else find_columns(task, table, kind.per_word)
    tables, read = {"train": table}, dict[str, list[Record]]()
    with _kept_in(task, rejects, checked):
        raw = isinstance(kind, SettlesTogether)
        for name, path in files.items():
            tables[name] = tables.get(name) or table_of(path, task.label, kind.per_word)
            read[name] = list(records_of(task, kind, tables[name], rejects[name], raw))
        if isinstance(kind, SettlesTogether):
            kind, task, read = settled(kind, task, read, files, rejects)
    if kind.per_word:
        refuse_numbered([record.inputs["words"] for record in read["train"]], task.text, table.header, table.path)
    missing = {name: share for name, share in FRACTIONS.items() if name not in files}
    records = read | (draw_missing(read["train"], kind, missing, task.data, task.split_seed) if missing else {})
    records, dropped = _without_leaks(task, kind, records)
    # A word tag that train lacks is only warned of, although no method can predict it.
    listing = SPLITS if kind.per_word else SPLITS[:1]
    targets = [record.target for name in listing for record in records[name]]
    if isinstance(kind, ScoresByInputs) and not task.metrics:
        task = task.resolved(metrics=kind.metrics_for([record.inputs for record in records["train"]], targets))
    task = kind.resolve(task, targets)
    for name in SPLITS[len(listing) :] if kind.has_labels else ():
        _require_trained_labels(records, name, files.get(name, task.data))
    examples = {
        name: [Example(f"{name}/{record.row}", record.inputs, record.target) for record in records[name]]
        for name in SPLITS
    }
    shares = "" if isinstance(kind, WritesTexts) else ", the same share of every class"
    by = f"the {task.reads}{seed_words(task)}{shares}, equal {task.reads}s in one split"
    counts = {name: len(records[name]) for name in SPLITS}
    given = {name: one.description for name, one in tables.items()}
    made = made_told(given, counts, "rows", task.data, by)
    made += "".join(f" {note}" for note in layout_notes(task, kind, table)) if checked else ""
    del table, tables  # some hold all their rows in memory
    return _dataset(task, kind, examples, files, made, _repair_counts(records, kind), dropped, checked, rejects)


def _with_known_metrics(task: Task) -> Task:
    """Return the task with every error rate among its metrics replaced by its accuracy. Raises `UnknownName`."""
    accuracies = {rate: metric for metric, rate in ERROR_RATES.items()}
    task = task.resolved(metrics=tuple(accuracies.get(name, name) for name in task.metrics))
    for name in task.metrics:
        metrics.get(name)
    return task


@contextmanager
def _kept_in(task: Task, rejects: Mapping[str, Rejects], checked: bool) -> Iterator[None]:
    """Write the rows that this block sets aside into the task's rejects file, also where it raises."""
    try:
        yield
    finally:
        if task.rejects and checked:
            write_rejects(Path(task.rejects), [bad for found in rejects.values() for bad in found.found])


def _dataset(
    task: Task,
    kind: Kind,
    examples: Mapping[str, Sequence[Example]],
    files: Mapping[str, Path],
    made: str,
    mended: Mapping[str, Mapping[str, int]],
    dropped: Mapping[str, int],
    checked: bool,
    rejects: Mapping[str, Rejects],
) -> Dataset:
    """Build the data set of a resolved task: encode targets, check that every metric can be computed, report."""
    splits = {
        name: Split(name, tuple(found), kind.encode([example.target for example in found], task))
        for name, found in examples.items()
    }
    require_scorable(splits["test"].targets, task)
    if task.reads == "sound":
        require_heard((example.inputs["sound"] for example in examples["train"]), task.data)
    rejected = {name: len(one.found) for name, one in rejects.items()} if task.rejects is not None else {}
    found: dict[str, Any] = {"warnings": [], "dropped": dict(dropped), "rejected": rejected}
    if checked:
        from graftwork.data.checks.split_checks import report

        found = report(task, splits, made, mended, dropped, rejected)
    seed = {"split_seed": task.split_seed or 0} if len(files) < len(SPLITS) else {}
    return Dataset(task, splits, digest(splits), seed | found)


def _without_leaks(
    task: Task, kind: Kind, rows: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, list[Any]], dict[str, int]]:
    """Return the rows of every split, without train's leaks if the task drops them, and the counts of dropped rows.

    Raises `DataError` if train keeps no row, or no row of one of its classes.
    """
    listed = {name: list(found) for name, found in rows.items()}
    if not task.drop_leaks:
        return listed, {}
    from graftwork.data.checks.repeats import leaking

    leaks, counts = leaking({name: [row.inputs for row in found] for name, found in listed.items()})
    kept = [row for row, leak in zip(listed["train"], leaks, strict=True) if not leak]
    before, after = (
        Counter(label for row in some for label in labels_of(row.target)) for some in (listed["train"], kept)
    )
    gone = sorted(before.keys() - after.keys()) if _has_classes(kind) else []
    if gone or not kept:
        raise DataError(
            f"without rows that repeat validation or test, train has none {f'of {clip(gone[0])}' if gone else 'left'}",
            where=str(task.data),
            got=f"{counts['exact']:,} exact and {counts['near']:,} near duplicates among {len(leaks):,} rows of train",
            do="add rows to train, or leave --drop-leaks out",
        )
    return listed | {"train": kept}, counts


def _repair_counts(records: Mapping[str, Sequence[Record]], kind: Kind) -> dict[str, dict[str, int]]:
    """Map each type of repair that was made while reading to its count per split."""
    counts = {name: sum(record.mended for record in records[name]) for name in SPLITS}
    found = {kind.repairs: counts} if kind.repairs else {}
    if isinstance(kind, SettlesTogether) and kind.rewrites:
        found = {kind.rewrites: {name: sum(record.rewritten for record in records[name]) for name in SPLITS}} | found
    rounded = {name: sum(record.rounded for record in records[name]) for name in SPLITS}
    return found | ({ROUNDED: rounded} if any(rounded.values()) else {})


def _require_different(files: Mapping[str, Path]) -> None:
    """Raise `ConfigError` if two splits have the same file."""
    for (name, path), (other, other_path) in combinations(sorted(files.items()), 2):
        if path.resolve() == other_path.resolve():
            raise ConfigError(f"{other} and {name} are the same file", where=str(path), do=f"leave {name} out")


def records_of(task: Task, kind: Kind, table: Table, rejects: Rejects, raw: bool = False) -> Iterator[Record]:
    """Yield the rows of a file with their targets parsed, one row in memory at a time. A bad row goes to `rejects`.

    With `raw`, targets are neither settled (`Kind.settle`) nor compared with the task's labels. Raises `DataError` if
    no row remains.
    """
    task = task.resolved(labels=()) if raw else task
    path, read = table.path, 0
    rows, roles = (
        (choice_rows(table, find_choice_columns(task, table)), ("text", "choices"))
        if isinstance(kind, OfChoices)
        else _rows_of_columns(table, task, kind)
    )
    for number, row in enumerate(rows, 1):
        if isinstance(row, Bad):
            rejects.refuse(row)
            continue
        try:
            record = _record(row, number, roles, task, kind, path, raw)
        except DataError as error:
            rejects.refuse(Bad(path, row.line, error, row.last))
            continue
        read += 1
        yield record
    rejects.require_rows(path, read)


def _rows_of_columns(table: Table, task: Task, kind: Kind) -> tuple[Iterator[DataRow | Bad], tuple[str, ...]]:
    """Return the rows with the cells of the task's columns, the target last, and the roles of the other cells."""
    known = ("text", "text_a", "text_b", *MEDIA)
    columns = {role: name for role in known if (name := getattr(task, role)) is not None}
    assert task.label is not None
    labels = names_of(task.label, table.header)
    for role, name in (*columns.items(), *(("label", name) for name in labels)):
        if table.path != task.data:
            column_of(table, role, name, None)
    words = task.text if kind.per_word else None
    rows = table.readings([*columns.values(), *labels], label=labels, words=words)
    if len(labels) > 1:
        joined = with_references if isinstance(kind, WritesTexts) else with_labels
        rows = joined(rows, labels, table.path)
    elif isinstance(kind, Scales) and has_decimal_commas(table.separation):
        rows = with_points(rows)
    return rows, ("words",) if kind.per_word else tuple(columns)


def _record(row: DataRow, number: int, roles: Sequence[str], task: Task, kind: Kind, path: Path, raw: bool) -> Record:
    where = f"{path}:{row.line}"
    inputs: dict[str, Any] = dict(zip(roles, row.cells, strict=False))
    for role, given in inputs.items():
        if role in MEDIA:
            inputs[role] = media_of(given, role, path, where)
        elif role == "words":
            check_words(text_cell(given, where), where)
        elif role != "choices" and not isinstance(given, str):
            text_cell(given, where)
            raise DataError(
                "the cell is a list of words, where a text is needed",
                where=where,
                got=f"{getattr(task, role)} = {clip(text_of(given))}",
                expected="a text in one piece",
                do="name another column, or tag each word: --kind tagging",
            )
        elif role != "choices" and not given.strip():
            raise DataError(
                "the text is empty",
                where=where,
                got=f"{getattr(task, role)} = {clip(text_of(given))}",
                expected="a text with something in it",
                do="remove the row or fill the text in",
            )
    label: Any = row.cells[-1]  # never an `EmbeddedFile`: readers give these for input columns only
    target, mended = kind.parse(label, task, where), 0
    if not raw:
        target, mended = kind.settle(target, inputs, task, where)
    return Record(row.line, number, inputs, target, mended, row.rounded, row.last)


def draw_missing(
    records: Sequence[Record], kind: Kind, fractions: Mapping[str, float], path: Path, seed: int | None = None
) -> dict[str, list[Record]]:
    """Divide the training file's rows into train and the splits of `fractions`, in file order.

    Raises `DataError` for fewer than 10 rows, for a class with a single row when a test split is to be drawn, and
    where so many rows are equal that a split stays empty.
    """
    require_enough(len(records), "rows", FEWEST_ROWS, fractions, path)
    if "test" in fractions and _has_classes(kind):
        _refuse_single(records, path)
    strata = kind.strata([record.target for record in records])
    inputs = [record.inputs for record in records]
    names = draw(inputs, strata, fractions, salt_of(seed))
    if _has_classes(kind):
        names = with_every_label(inputs, names, [labels_of(record.target) for record in records], salt_of(seed))
    drawn = {
        split: [record for record, name in zip(records, names, strict=True) if name == split]
        for split in ("train", *fractions)
    }
    for split, rows in drawn.items():
        if not rows:
            raise DataError(
                f"no row is left for {split}: rows with the same inputs stay in one split",
                where=str(path),
                got=f"{len(records)} rows, {len({canonical(plain(record.inputs)) for record in records})} different",
                do="add rows, or give a file for every split",
            )
    return drawn


def _has_classes(kind: Kind) -> bool:
    """Return whether labels belong to whole rows, not to words, so that a split can lack a class."""
    return kind.has_labels and not kind.per_word


def _refuse_single(records: Sequence[Record], path: Path) -> None:
    """Raise `DataError` for a class with a single row, which can't be in both train and test."""
    counts = Counter(label for record in records for label in labels_of(record.target))
    for record in records:
        for label in labels_of(record.target):
            if counts[label] == 1:
                single = sum(count == 1 for count in counts.values())
                raise DataError(
                    f"the class {clip(label)} has a single row: it cannot be in train and in test",
                    where=f"{path}:{record.line}",
                    got=f"{several(single, 'such class')} of {len(counts)}",
                    expected="two rows or more of every class",
                    do=AS_NUMBERS if _are_numbers(counts) else "add rows of it, remove it, or give a file with --test",
                )


def _require_trained_labels(records: Mapping[str, Sequence[Record]], name: str, path: Path) -> None:
    """Raise `DataError` for a label of this split that train lacks."""
    trained = {label for record in records["train"] for label in labels_of(record.target)}
    for record in records[name]:
        for label in labels_of(record.target):
            if label not in trained:
                near = nearest(label, trained)
                told = f"did you mean {clip(near)}?" if near else "add rows of it to train, or remove it here"
                raise DataError(
                    f"the label {clip(label)} is in {name} and not in train",
                    where=f"{path}:{record.line}",
                    expected=f"one of {_listed(sorted(trained))}",
                    do=AS_NUMBERS if _are_numbers(trained) else told,
                )


def _are_numbers(labels: Collection[str]) -> bool:
    """Return whether there are at least `FEWEST_ROWS` labels and all are numbers: perhaps targets of a regression."""
    return len(labels) >= FEWEST_ROWS and all(map(is_number, labels))


def _listed(labels: Sequence[str]) -> str:
    """Join up to twenty labels, with the number of the remaining ones."""
    more = f" and {len(labels) - MOST_LISTED} more" if len(labels) > MOST_LISTED else ""
    return ", ".join(labels[:MOST_LISTED]) + more


def digest(splits: Mapping[str, Split]) -> str:
    """Return the sha256 of a canonical line of every example, in the order train, validation, test.

    A line holds id, inputs and target, and the source text where there is one.
    """
    hashed = hashlib.sha256()
    for name in SPLITS:
        for example in splits[name].examples:
            line = [example.id, plain(example.inputs), example.target]
            line += [example.source] if example.source is not None else []
            hashed.update(canonical(line).encode() + b"\n")
    return hashed.hexdigest()
