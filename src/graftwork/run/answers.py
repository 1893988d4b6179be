"""Answers to a file of texts, as a stream: the whole file is checked before the first one, then read again."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graftwork.core.choices import check_choices
from graftwork.core.example import Example, Input, text_of
from graftwork.core.media import MEDIA, Media
from graftwork.core.passages import Passage, question_of
from graftwork.core.task import Task
from graftwork.core.words import example_of
from graftwork.data.choices import choice_rows, find_choice_columns
from graftwork.data.folder import media_of
from graftwork.data.load import check_words
from graftwork.data.squad import questions
from graftwork.data.table import Table, open_table
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.files import writing
from graftwork.run.bulk import Window, answer_windows, check_roles
from graftwork.run.task_module import TaskModule

SHAPES = ("jsonl", "csv", "tsv")
QUESTION = ("question", "words")  # the roles of questions about passages
CHECKED_AT_ONCE = 50_000  # rows between two signs of life
Progress = Callable[[float, str], None]  # fraction of the rows, what goes on


@dataclass
class Answered:
    """What came of a file."""

    rows: int = 0
    cut: int = 0  # rows that were longer than the backbone takes


def answer_file(
    modules: Sequence[TaskModule],
    source: Path,
    out: Path | None,
    echo: Callable[[str], None],
    progress: Progress = lambda done, text: None,
    columns: Mapping[str, str] | None = None,
) -> Answered:
    """Answer every row of `source`; into `out` (whole or not at all), or line by line through `echo`.

    The first module's answers have their own names, those of the others the name of their task before them. `columns`
    (role -> column) names the columns that are not called like their roles. Memory does not grow with the rows.

    Raises `DataError` for a bad row or a missing column, `ConfigError` for a suffix that is not known, or for modules
    that want different inputs or share a name.
    """
    shape = out.suffix.lstrip(".").lower() if out else "jsonl"
    if shape not in SHAPES:
        raise ConfigError(
            f"unknown suffix {out.suffix!r}" if out and out.suffix else "the file's name has no suffix",
            where=str(out),
            expected=", ".join(f".{name}" for name in SHAPES),
        )
    if out and out.resolve() == source.resolve():
        raise ConfigError(
            "--file and --out are the same file", where=str(out), do="give the answers a file of their own"
        )
    check_roles(modules)
    prefixes = prefixes_of(modules)
    read = _reader(modules[0], source, columns or {})
    total = _check(read(), progress)
    done = Answered()
    found = answer_windows(modules, read())
    if out is None:
        for window in found:
            for line in _lines(window, prefixes, shape, done):
                echo(line)
        return done
    with writing(out) as stream:
        for window in found:
            stream.write("".join(f"{line}\n" for line in _lines(window, prefixes, shape, done)).encode())
            progress(done.rows / total, f"{done.rows:,} of {total:,} rows")
    return done


def prefixes_of(modules: Sequence[TaskModule]) -> list[str]:
    """What stands before the names of each module's answers: nothing for the first, `task.` for the others.

    Raises `ConfigError` for two others with one name.
    """
    names = [module.task.name for module in modules[1:]]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ConfigError(
                f"two modules answer the task {name!r}: their answers would have one name",
                do="ask one of them in a command of its own",
            )
    return ["", *(f"{name}." for name in names)]


def shown(example: Example) -> dict[str, Any]:
    """The inputs of an example as JSON: where a text was cut into words, the text."""
    if "question" in example.inputs and example.source is not None:
        return {"question": example.inputs["question"], "context": example.source}
    if example.source is not None:
        return {"text": example.source}
    return {role: _as_json(given) for role, given in example.inputs.items()}


def _as_json(given: Input | Media) -> str | list[str]:
    if isinstance(given, Media):
        return given.path
    return given if isinstance(given, str) else list(given)


def merged(inputs: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], prefixes: Sequence[str]) -> dict[str, Any]:
    """The texts, then every module's answer under its prefix."""
    named: dict[str, Any] = dict(inputs)
    for answer, prefix in zip(answers, prefixes, strict=True):
        named |= {f"{prefix}{key}": value for key, value in answer.items()}
    return named


def _check(examples: Iterator[Example], progress: Progress) -> int:
    """Read the whole file, so that a bad row is found before hours of work and not in them; returns the rows."""
    rows = 0
    for rows, _ in enumerate(examples, 1):
        if rows % CHECKED_AT_ONCE == 0:
            progress(0.0, f"{rows:,} rows checked")
    return rows


def _reader(module: TaskModule, source: Path, named: Mapping[str, str]) -> Callable[[], Iterator[Example]]:
    """What reads the file anew at every call."""
    if module.roles == QUESTION and Path(source.name.lower().removesuffix(".gz")).suffix == ".json":
        return lambda: (
            question_of(f"question/{number}", asked.question, Passage.of(asked.context))
            for number, asked in enumerate(questions(source), 1)
        )
    table = open_table(source)
    if module.roles == ("text", "choices"):
        for role in named:
            if role not in module.roles:
                raise ConfigError(f"this module has no {role}", got=_flag(role), expected="--text and --choices")
        choices = tuple(name.strip() for name in named.get("choices", "").split(",") if name.strip())
        task = find_choice_columns(replace(module.task, text=named.get("text"), choices=choices), table, labelled=False)
        return lambda: _of_choices(table, task)
    if "choices" in named:
        raise ConfigError("this module has no choices", got="--choices", do="leave it out")
    return partial(_examples, table, module.roles, _columns(module, table, named))


def _of_choices(table: Table, task: Task) -> Iterator[Example]:
    """Every text with its choices, named by its line."""
    for row in choice_rows(table, task):
        text, choices = row.cells
        where = f"{table.path}:{row.line}"
        if not text_of(text).strip():
            raise DataError("the text is empty", where=where, do="remove the row or fill the text in")
        check_choices(tuple(choices), where)
        yield Example(f"line/{row.line}", {"text": text, "choices": choices})


def _examples(table: Table, roles: Sequence[str], columns: list[str]) -> Iterator[Example]:
    """Every row, named by its line."""
    of_words = tuple(roles) == ("words",)
    for row in table.rows(columns, label=columns[0] if of_words else None):  # as a label it may be a list
        where = f"{table.path}:{row.line}"
        if not all(text_of(cell).strip() for cell in row.cells):
            raise DataError("the text is empty", where=where, do="remove the row or fill the text in")
        if of_words:
            example = example_of(f"line/{row.line}", row.cells[0])
            check_words(example.inputs["words"], where)
            yield example
        elif tuple(roles) == QUESTION:
            question, context = map(text_of, row.cells)
            yield question_of(f"line/{row.line}", question, Passage.of(context))
        elif roles[0] in MEDIA:
            yield Example(f"line/{row.line}", {roles[0]: media_of(str(row.cells[0]), roles[0], table.path, where)})
        else:
            yield Example(f"line/{row.line}", dict(zip(roles, row.cells, strict=True)))


def _lines(window: Window, prefixes: Sequence[str], shape: str, done: Answered) -> list[str]:
    """The window's lines, a header first where the file begins and its shape has one; counts into `done`."""
    answers = zip(*window.answers, strict=True)
    rows = [merged(shown(example), answer, prefixes) for example, answer in zip(window.examples, answers, strict=True)]
    first = not done.rows
    done.rows += len(rows)
    done.cut += window.cut
    if shape == "jsonl":
        return [json.dumps(row, ensure_ascii=False) for row in rows]
    flat = [_flat(row) for row in rows]
    header = [list(flat[0])] if first else []
    return _delimited([*header, *([str(value) for value in row.values()] for row in flat)], shape)


def _columns(module: TaskModule, table: Table, named: Mapping[str, str]) -> list[str]:
    """The columns that hold the module's inputs: those `named`, else those called like the roles.

    `sentence` serves for `text`.
    """
    flags = {("words",): ("text",), QUESTION: ()}.get(module.roles, module.roles)
    for role in named:
        if role not in flags:
            expected = " and ".join(map(_flag, flags)) or "columns called question and context"
            raise ConfigError(f"this module has no {role}", got=_flag(role), expected=expected)
    if module.roles == ("words",):
        return [_words_column(table, named.get("text"))]
    if module.roles == ("text",) and not named and "text" not in table.header and "sentence" in table.header:
        return ["sentence"]
    roles = ("question", "context") if module.roles == QUESTION else module.roles
    for role in roles:
        column = named.get(role, role)
        if column not in table.header:
            near = nearest(column, table.header)
            raise DataError(
                f"no column {column!r}",
                where=f"{table.path}:1",
                got=f"columns: {', '.join(table.header)}",
                expected=f"columns called {' and '.join(roles)}" if len(roles) > 1 else f"a column called {role}",
                do=_remedy(role, near, may_be_named=role in flags),
            )
    return [named.get(role, role) for role in roles]


def _remedy(role: str, near: str | None, may_be_named: bool) -> str:
    if not may_be_named:
        return f"rename the column {near!r}" if near else f"add a column called {role}"
    return f"did you mean {_flag(role)} {near}?" if near else f"name it: {_flag(role)} COLUMN"


def _words_column(table: Table, named: str | None) -> str:
    """The column of the words, or of texts that are cut into them."""
    known = ("tokens", "words", "text", "sentence")
    for column in [named] if named is not None else known:
        if column in table.header:
            return column
    raise DataError(
        f"no column {named!r}" if named is not None else "no column of words or texts",
        where=f"{table.path}:1",
        got=f"columns: {', '.join(table.header)}",
        expected="" if named is not None else f"one of {', '.join(known)}",
        do=f"name it: {_flag('text')} COLUMN",
    )


def _flag(role: str) -> str:
    """`text_a` is `--text-a`."""
    return f"--{role.replace('_', '-')}"


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Probabilities become columns `p(label)`; several labels are joined by `|`, as they are read; lists stay JSON."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            prefix = key.removesuffix("probabilities")
            flat |= {f"{prefix}p({label})": chance for label, chance in value.items()}
        else:
            flat[key] = "" if value is None else value
            if isinstance(value, list):
                flat[key] = "|".join(value) if key.endswith("label") else json.dumps(value, ensure_ascii=False)
    return flat


def _delimited(rows: Sequence[list[str]], shape: str) -> list[str]:
    if shape == "tsv":  # never quoted: a tab or line end inside a text becomes a space
        return ["\t".join(" ".join(value.split()) for value in row) for row in rows]
    lines = _Lines()
    csv.writer(lines, lineterminator="\r\n").writerows(rows)  # what ends a line is what gets quoted
    return lines.written


class _Lines:
    """What a `csv.writer` writes, a line at a time and without its end."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        self.written.append(line.removesuffix("\r\n"))
