"""Selection of the columns that a task reads: those it names, else those with the usual names."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from graftwork.core.kind import WritesTexts
from graftwork.core.media import COLUMNS as MEDIA_COLUMNS
from graftwork.core.media import MEDIA
from graftwork.core.table_columns import COLUMNS, TARGETS
from graftwork.core.task import Task
from graftwork.data.readers.label_columns import APART, found_labels, marked_columns, names_of
from graftwork.data.readers.separated import NAMES
from graftwork.data.readers.table import Table, open_table, suffix_of
from graftwork.data.readers.written_columns import usual_pairs, with_usual_columns
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.registry import kinds

OTHERS = "; of a pair --text-a COLUMN --text-b COLUMN; of files --image COLUMN or --sound COLUMN"


def table_of(path: Path, label: str | None, per_word: bool) -> Table:
    """Open the table in `path`. JSONL with spans becomes words and tags, unless `label` is another key.

    With `per_word`, `label` must then be a key of the file, and neither `tokens` nor `tags`. Raises as `open_table`.
    """
    table = open_table(path)
    if label is None or table.source is None or suffix_of(path) != ".jsonl":
        return table
    key = table.source.spans_key
    if label == key if key is not None else label in table.header:
        return table
    plain = table.without_spans()
    is_another = not per_word or (label in plain.header and label not in table.header)
    return plain if is_another else table


def find_columns(task: Task, table: Table, per_word: bool = False) -> Task:
    """Return `task` with `text` (if `per_word`, the words), or `text_a` and `text_b`, and `label` set to columns.

    Raises `ConfigError` where a setting names no column or two settings contradict, `DataError` where none is set and
    none is found by its name.
    """
    if task.text is not None and (task.text_a is not None or task.text_b is not None):
        raise ConfigError("text and text_a, text_b are both set", do="set --text for one text, the others for a pair")
    chosen = [role for role in ("text", "text_a", *MEDIA) if getattr(task, role) is not None]
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)} are all set", do="set the one that the task reads")
    if (task.text_a is None) != (task.text_b is None):
        raise ConfigError("a pair needs two columns", do="set both --text-a and --text-b, or --text for one text")
    if per_word and task.text_a is not None:
        raise ConfigError(
            f"the kind {task.kind!r} tags the words of one text, not of a pair", do="set --text for one text"
        )
    if per_word and task.reads != "text":
        raise ConfigError(
            f"the kind {task.kind!r} tags words, not images or sounds", got=f"--{task.reads}", do="set --text"
        )
    if isinstance(kinds.get(task.kind), WritesTexts):
        task = with_usual_columns(task, table)
    roles = _text_columns(task, table, per_word)
    labels = _label_columns(task, table, tuple(roles.values()))
    twice = [name for name, count in Counter([*roles.values(), *labels]).items() if count > 1]
    if twice:
        named = " and ".join([*(role for role, name in roles.items() if name == twice[0]), "label"])
        raise ConfigError(
            f"{named} are the same column, {twice[0]!r}", where=str(table.path), do="name another column for one"
        )
    return task.resolved(**roles, label=APART.join(labels))


def _label_columns(task: Task, table: Table, inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the column of the target, or one column per label."""
    kind = kinds.get(task.kind)
    usual = next((name for name in TARGETS[kind.per_word] if name in table.header), None)
    may_be_several = kind.has_labels and not kind.per_word
    if task.label is None and usual is None and may_be_several and (found := found_labels(table, inputs)):
        return found
    label = task.label or usual or TARGETS[kind.per_word][0]
    names = names_of(label, table.header) if may_be_several or isinstance(kind, WritesTexts) else (label,)
    if task.label is None and usual is None and may_be_several:
        marked = marked_columns(table, [name for name in table.header if name not in inputs])
        more = f"; of labels with a column each: --label {APART.join(marked)}" if len(marked) > 1 else ""
        return (column_of(table, "label", label, None, more=more),)
    return tuple(column_of(table, "label", name, task.label) for name in names)


def _text_columns(task: Task, table: Table, per_word: bool) -> dict[str, str]:
    """Map each role to its column."""
    if task.text is not None:
        return {"text": column_of(table, "text", task.text, task.text)}
    for role in MEDIA:
        if (name := getattr(task, role)) is not None:
            return {role: column_of(table, role, name, name)}
    if task.text_a is not None and task.text_b is not None:
        chosen = {"text_a": task.text_a, "text_b": task.text_b}
        return {role: column_of(table, role, name, name) for role, name in chosen.items()}
    found: list[dict[str, str]] = [{"text": name} for name in COLUMNS[per_word] if name in table.header]
    if {"text_a", "text_b"} <= set(table.header) and not per_word:
        found.append({"text_a": "text_a", "text_b": "text_b"})
    if not (found or per_word):
        found = [{role: name} for role in MEDIA for name in MEDIA_COLUMNS[role] if name in table.header][:1]
    of_spans = table.source is not None and table.source.spans_key is not None
    if not (found or per_word) and COLUMNS[True][0] in table.header:
        raise DataError(
            f"the file has words, and the kind {task.kind!r} reads texts",
            where=f"{table.path}:1",
            got=columns_told(table),
            do=f"to tag each word: --kind tagging{'; to classify texts: --label KEY' if of_spans else ''}",
        )
    if len(found) > 1:
        raise DataError(
            "more than one column could be the text",
            where=f"{table.path}:1",
            got=columns_told(table),
            do="say which: --text COLUMN, or --text-a and --text-b",
        )
    of_lines = per_word and table.separation is not None
    more = "; if the file has a word on each line, rename it to .conll" if of_lines else ""
    if not per_word and (pair := usual_pairs(table.header)):
        more += f"; to write {pair[0][1]}, a text, of {' and '.join(pair[0][0])}: --kind generation"
    return found[0] if found else {"text": column_of(table, "text", COLUMNS[per_word][0], None, more=more)}


def column_of(table: Table, role: str, name: str, setting: str | None, known: str = "", more: str = "") -> str:
    """Return `name` if the table has it; else raise an error that lists the columns and suggests the nearest.

    `known` lists the usual names for the message; texts and words have a default. `more` is added to the remedy.
    """
    if name in table.header:
        return name
    near = nearest(name, table.header)
    flag = f"--{role.replace('_', '-')} {shlex.quote(near) if near else 'COLUMN'}"
    do = f"did you mean {flag}?" if near else f"name it: {flag}{OTHERS if name == 'text' and not known else ''}"
    known = known or {"text": "text, sentence, or text_a and text_b", "tokens": "tokens or words"}.get(name, name)
    if setting is None and table.lacks_header:
        do = "the first line looks like a row: put a header above it, such as text and label"
    if apart := separator_told(table):
        more += f"; {apart}"
    error = ConfigError if setting is not None else DataError
    raise error(
        f"no column {name!r}",
        where=f"{table.path}:1",
        got=columns_told(table),
        expected=""
        if setting is not None
        else f"a column called {known}"
        if " and " not in known
        else f"columns called {known}",
        do=do + more,
    )


def columns_told(table: Table) -> str:
    """List the table's columns for a message, with an unusual separator and doccano's key of spans, if any."""
    told = f"columns: {', '.join(repr(name) if ',' in name else name for name in table.header)}"
    if table.separation is not None and not table.separation.usual:
        told += f", separated by {table.separation.name}s"
    if table.source is not None and (key := table.source.spans_key):
        told += f", made of the spans in {key!r}; where the label is another key, every key is a column"
    return told


def separator_told(table: Table) -> str:
    """Return a remedy if a column's name contains another separator: how to declare it in the file; else ""."""
    if table.separation is None:
        return ""
    marks = [mark for mark in NAMES if mark != table.separation.mark]
    held = next((mark for mark in marks if any(mark in name for name in table.header)), None)
    return f"if {NAMES[held]}s separate the columns, write the line sep={held} above the header" if held else ""
