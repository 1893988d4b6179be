"""The usual columns of text generation, inputs with their target: source and target, text and summary, …"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from graftwork.core.media import COLUMNS as MEDIA_COLUMNS
from graftwork.core.task import Task
from graftwork.data.readers.nested_columns import TRANSLATION
from graftwork.data.readers.parallel_files import is_parallel
from graftwork.data.readers.rejects import Bad, DataRow
from graftwork.data.readers.table import Table
from graftwork.errors import DataError, clip

_SAID = (
    "transcript",
    "transcription",
    "text",
    "sentence",
    "caption",
    "target",
)  # the transcript of a sound, or the caption of an image
USUAL: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (  # input columns, and the targets that go with them
    (("source",), ("target", "targets", "translation", "reference", "references")),
    (("src",), ("tgt", "trg", "ref")),
    (("text",), ("summary", "target", "targets", "label")),
    (("article",), ("highlights", "summary")),
    (("document",), ("summary",)),
    (("dialogue",), ("summary",)),
    (("question", "context"), ("answer", "answers")),
    (("question",), ("answer", "answers")),
    (("instruction", "input"), ("output", "response")),
    (("instruction",), ("output", "response")),
    (("input",), ("output", "target", "targets")),
    (("prompt",), ("completion", "response")),
    (("text_a", "text_b"), ("target", "label")),
    (("messages.user",), ("messages.assistant",)),  # the turns of a conversation
    (("messages.system", "messages.user"), ("messages.assistant",)),
    (("conversations.human",), ("conversations.gpt",)),
    (("conversations.system", "conversations.human"), ("conversations.gpt",)),
    (("prompt.user",), ("completion.assistant",)),
    (("prompt.system", "prompt.user"), ("completion.assistant",)),
    *(((column,), _SAID) for column in MEDIA_COLUMNS["sound"] + MEDIA_COLUMNS["image"]),
)
_INPUTS = ("text", "text_a", "image", "sound")  # settings that name an input


def usual_pairs(header: Iterable[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return the input columns and the target column of every usual pair that a table has."""
    here = set(header)
    return [(inputs, target) for inputs, targets in USUAL for target in targets if here >= {*inputs, target}]


def with_usual_columns(task: Task, table: Table) -> Task:
    """Return `task` with the columns that it does not name set to those with the usual names.

    Raises `DataError` where none or several pairs of columns could be meant.
    """
    given = [getattr(task, role) for role in _INPUTS if getattr(task, role)]
    if given and task.label:
        return task
    found, here = usual_pairs(table.header), set(table.header)
    if given:
        told = {*given, *([task.text_b] if task.text_b else [])}
        usual = {target for inputs, target in found if told == set(inputs)}
        usual = usual or {target for _, targets in USUAL for target in targets} & here - told
        usual = usual - {"label"} or usual
        return task.resolved(label=usual.pop()) if len(usual) == 1 else _unfound(task, table)
    if task.label:
        others = [inputs for inputs, _ in USUAL if here >= set(inputs) and task.label not in inputs]
        found = [(inputs, task.label) for inputs in others]
    found = [one for one in found if not any(set(one[0]) < set(other[0]) for other in found)]  # rather two inputs
    found = [one for one in found if one[1] != "label"] or found
    if len(set(found)) > 1:
        raise DataError(
            "more than one pair of columns could be the text and its target",
            where=f"{table.path}:1",
            got="; ".join(f"{' and '.join(inputs)} -> {target}" for inputs, target in dict.fromkeys(found)),
            expected="one text, or a pair, and one target",
            do="say which: --text COLUMN --label COLUMN, or --text-a, --text-b and --label",
        )
    if not found:
        _unfound(task, table)
    inputs, target = found[0]
    media = next((role for role, names in MEDIA_COLUMNS.items() if inputs[0] in names), "text")
    roles = dict(zip(("text_a", "text_b") if len(inputs) > 1 else (media,), inputs, strict=True))
    return task.resolved(label=target, **roles)


def _unfound(task: Task, table: Table) -> NoReturn:
    """Raise `DataError` that asks for a name: the direction of a translation, the target, or both columns."""
    parallel = is_parallel(table.path)
    sides = table.header if parallel else [name for name in table.header if name.startswith(f"{TRANSLATION}.")]
    if len(sides) > 1:
        one, other, *_ = sides
        raise DataError(
            f"{'parallel files' if parallel else 'translations'}, and nothing says which is to be written",
            where=str(table.path.parent if parallel else table.path),
            got=f"the sides {', '.join(sides)}",
            expected="the side that is read and the one that is written",
            do=f"say the direction: --text {one} --label {other}, or --text {other} --label {one}",
        )
    named = next((f"{role} is {getattr(task, role)!r}; " for role in (*_INPUTS, "label") if getattr(task, role)), "")
    raise DataError(
        "no columns, or several, have the usual names of a text and its target",
        where=f"{table.path}:1",
        got=f"{named}columns: {', '.join(table.header)}",
        expected="source and target, text and summary, sound and transcript, or the like",
        do="the first line looks like a row: put a header above it, such as source and target"
        if table.lacks_header
        else "name them: --text COLUMN --label COLUMN; of several references --label A,B",
    )


def with_references(rows: Iterator[DataRow | Bad], names: Sequence[str], path: Path) -> Iterator[DataRow | Bad]:
    """Replace the last cells of every row, a reference per column of `names`, by the tuple of those that are not empty.

    A row with an empty first reference is bad, as training uses the first.
    """
    for row in rows:
        if isinstance(row, Bad):
            yield row
            continue
        first, *others = row.cells[-len(names) :]
        if isinstance(first, str) and first.strip():
            kept = tuple(cell for cell in (first, *others) if isinstance(cell, str) and cell.strip())
            yield replace(row, cells=(*row.cells[: -len(names)], kept))
            continue
        error = DataError(
            "the first reference is empty" if isinstance(first, str) else "a reference is no text",
            where=f"{path}:{row.line}",
            got=f"{names[0]} = {clip(str(first))}",
            expected=f"a text in {names[0]}; the cells of {', '.join(names[1:])} may be empty",
            do="fill it in, or name another column first",
        )
        yield Bad(path, row.line, error, row.last)
