"""Selection of the columns that a task reads: those it names, else those with the usual names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from graftwork.core.media import COLUMNS as MEDIA_COLUMNS
from graftwork.core.media import MEDIA
from graftwork.core.task import Task
from graftwork.data.readers import annotation_exports, spacy_examples, whole_file_formats
from graftwork.data.readers.table import Table, open_table
from graftwork.errors import ConfigError, DataError, nearest

COLUMNS = {False: ("text", "sentence"), True: ("tokens", "words")}  # usual columns of a text, and of a list of words
OTHERS = "; of a pair --text-a COLUMN --text-b COLUMN; of files --image COLUMN or --sound COLUMN"
MOST_WORDS = 5  # words from which a column name is more likely a text
TARGETS = {False: ("label",), True: ("tags", "upos", "label")}


def table_of(path: Path, label: str | None, per_word: bool) -> Table:
    """Open the table in `path`. JSONL with spans becomes words and tags, unless `label` is another key.

    With `per_word` that key must exist in the file, and not be `tokens` or `tags`. Raises as `open_table`.
    """
    table = open_table(path)
    found = whole_file_formats.format_of(path)
    if label is None or found not in whole_file_formats.SPANS_OF_LINES or path.suffix == spacy_examples.BINARY:
        return table
    is_doccano = found is whole_file_formats.DOCCANO
    if label == annotation_exports.spans_key(path) if is_doccano else label in table.header:
        return table
    plain = open_table(path, spans=False)
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
        raise ConfigError(f"a pair has no words that the kind {task.kind!r} could answer", do="set --text for one text")
    if per_word and task.reads != "text":
        raise ConfigError(f"the kind {task.kind!r} answers words", got=f"--{task.reads}", do="set --text")
    label = task.label or next((name for name in TARGETS[per_word] if name in table.header), TARGETS[per_word][0])
    roles = _text_columns(task, table, per_word) | {"label": column_of(table, "label", label, task.label)}
    twice = [name for name, count in Counter(roles.values()).items() if count > 1]
    if twice:
        named = " and ".join(role for role, name in roles.items() if name == twice[0])
        raise ConfigError(
            f"{named} are the same column, {twice[0]!r}",
            where=str(table.path),
            do="name another column for one",
        )
    return task.resolved(**roles)


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
    if not (found or per_word) and COLUMNS[True][0] in table.header:
        raise DataError(
            f"the file has words, and the kind {task.kind!r} reads texts",
            where=f"{table.path}:1",
            got=columns_told(table),
            do=f"to tag each word: --kind tagging{'; to classify texts: --label KEY' if _of_spans(table) else ''}",
        )
    if len(found) > 1:
        raise DataError(
            "more than one column could be the text",
            where=f"{table.path}:1",
            got=columns_told(table),
            do="say which: --text COLUMN, or --text-a and --text-b",
        )
    return found[0] if found else {"text": column_of(table, "text", COLUMNS[per_word][0], None)}


def column_of(table: Table, role: str, name: str, setting: str | None, known: str = "") -> str:
    """Return `name` if the table has it; else raise an error that lists the columns and suggests the nearest.

    `known` are the usual names, in words; the default is that of a text, or of words.
    """
    if name in table.header:
        return name
    near = nearest(name, table.header)
    flag = f"--{role.replace('_', '-')} {near or 'COLUMN'}"
    do = f"did you mean {flag}?" if near else f"name it: {flag}{OTHERS if name == 'text' and not known else ''}"
    known = known or {"text": "text, sentence, or text_a and text_b", "tokens": "tokens or words"}.get(name, name)
    if setting is None and any(len(cell.split()) >= MOST_WORDS for cell in table.header):
        do = "the first line looks like a row: put a header above it, such as text and label"
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
        do=do,
    )


def columns_told(table: Table) -> str:
    """List the table's columns for a message; for doccano's spans also the key that they are made from."""
    told = f"columns: {', '.join(table.header)}"
    if _of_spans(table):
        key = annotation_exports.spans_key(table.path)
        told += f", made of the spans in {key!r}; where the label is another key, every key is a column"
    return told


def _of_spans(table: Table) -> bool:
    return whole_file_formats.format_of(table.path, table.spans) is whole_file_formats.DOCCANO
