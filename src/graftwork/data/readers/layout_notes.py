"""Sentences of the data report on how a file was interpreted, where its suffix and cells alone do not show it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from graftwork.core.kind import Kind, OfChoices, Scales, WritesTexts
from graftwork.core.media import MEDIA
from graftwork.core.task import Task
from graftwork.data.readers.choice_labels import letter_of
from graftwork.data.readers.class_folder import of_windows
from graftwork.data.readers.json_text import NamedList
from graftwork.data.readers.label_columns import names_of
from graftwork.data.readers.rejects import Bad, Cell
from graftwork.data.readers.separators import has_decimal_commas, is_decimal_comma
from graftwork.data.readers.table import Table

SAMPLE = 100  # rows that are looked at
INPUTS = ("text", "text_a", "text_b", *MEDIA)
ENOUGH = 20  # labels among which a 0 is expected if numbers count from 0
_QUOTED = re.compile(r'"[^"]*(""[^"]*)+"')


def layout_notes(task: Task, kind: Kind, table: Table) -> Iterator[str]:
    """Yield sentences on how the training file is interpreted, for a task whose columns are known."""
    label = task.label or ""
    labels = names_of(label, table.header)
    if isinstance(kind, WritesTexts):
        inputs = [name for role in INPUTS if (name := getattr(task, role)) is not None]
        yield f"The network reads {' and '.join(inputs)} and learns to write {' or '.join(labels)}."
    elif len(labels) > 1:
        yield f"The labels are columns, with 1 in the rows where each holds: {', '.join(labels)}."
        if without := [name for name in labels if name not in task.labels]:
            yield f"Of these, no row of train has {', '.join(without)}: left out."
    if isinstance(kind, OfChoices):
        yield from _of_choices(table, task.settings.choices, label, task.settings.count_from)
    if table.separation is not None:
        yield from _of_separation(table, task, isinstance(kind, Scales))
    role = next((role for role in MEDIA if getattr(task, role) is not None), None)
    paths = _first(table, [getattr(task, role)]) if role is not None and table.path.is_file() else []
    if any(of_windows(str(path), table.path) for (path,) in paths):
        yield f"Paths of {table.path.name} with backslashes are read with slashes."


def _of_choices(table: Table, listed: Sequence[str], label: str, counted: str | None) -> Iterator[str]:
    """Yield how labels name their choice: by letter, by the names in each row, or by numbers that may count from 1."""
    rows = _first(table, [*listed, label], words=listed[0] if len(listed) == 1 else None)
    if any(isinstance(row[0], NamedList) for row in rows):
        yield "Labels are looked up in the names that are beside the choices of each row."
        return
    if len(listed) == 1 and not any(isinstance(row[0], tuple) for row in rows):
        return  # a row for each candidate, with a mark
    texts = [row[0] if isinstance(row[0], tuple) else row[:-1] for row in rows]
    called = [str(label) for (*_, label), given in zip(rows, texts, strict=True) if label not in (*listed, *given)]
    if any(letter_of(label) for label in called):
        yield "Labels are the letters of choices: A is the first, B the second."
    if len(called) >= ENOUGH and counted is None and all(label.isdecimal() and int(label) for label in called):
        yield "Labels are read as numbers from 0, and none of the first is 0: if they count from 1, say --count-from 1."


def _of_separation(table: Table, task: Task, numbers: bool) -> Iterator[str]:
    """Yield what separates the columns where it is unusual, and what follows from that for cells."""
    name, separation = table.path.name, table.separation
    assert separation is not None
    if not separation.usual:
        quoted = ", and cells may be in quotes" if separation.mark == "\t" else ""
        yield f"The columns of {name} are separated by {separation.name}s{quoted}."
    targets = _first(table, [task.label or ""]) if numbers and has_decimal_commas(separation) else []
    if any(is_decimal_comma(target) for (target,) in targets):
        yield "Decimal commas of the targets are read as points."
    if not separation.quoted and task.text in table.header:
        found = sum(bool(_QUOTED.fullmatch(str(cell))) for (cell,) in _first(table, [task.text or ""]))
        if found:
            yield (
                f"Texts of {name} are in quotes, those inside doubled ({found} of its first {SAMPLE} rows), and are "
                "read with them: if it is quoted as CSV is, rename it to .csv; tabs may separate its columns."
            )


def _first(table: Table, columns: Sequence[str], words: str | None = None) -> list[tuple[Cell, ...]]:
    """Return the cells of the first rows, of any type."""
    found = islice(table.readings(columns, label=columns, words=words), SAMPLE)
    return [row.cells for row in found if not isinstance(row, Bad)]
