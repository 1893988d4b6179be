"""Answers to a file of texts, a chunk at a time: the whole file is checked before the first one."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from graftwork.data.table import Table, open_table
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.files import storage_errors
from graftwork.run.task_module import TaskModule

ROWS_AT_ONCE = 1024
SHAPES = ("jsonl", "csv", "tsv")
Progress = Callable[[float, str], None]  # fraction of the rows, what goes on


@dataclass
class Answered:
    """What came of a file."""

    rows: int = 0
    cut: int = 0  # rows that were longer than the backbone takes


def answer_file(
    module: TaskModule,
    source: Path,
    out: Path | None,
    echo: Callable[[str], None],
    progress: Progress = lambda done, text: None,
    columns: Mapping[str, str] | None = None,
) -> Answered:
    """Answer every row of `source`; into `out` (whole or not at all), or line by line through `echo`.

    `columns` (role -> column) names the columns that are not called like their roles.

    Raises `DataError` for a bad row or a missing column, `ConfigError` for a suffix that is not known.
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
    table = open_table(source)
    wanted = _columns(module, table, columns or {})
    total = sum(1 for _ in _inputs(table, wanted))
    done = Answered()
    lines = _lines(module, _inputs(table, wanted), shape, done)
    if out is None:
        for line in lines:
            echo(line)
        return done
    with storage_errors(out):
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                for line in lines:
                    stream.write(line + "\n")
                    progress(done.rows / total, f"{done.rows:,} of {total:,} rows")
            os.chmod(name, 0o644)
            os.replace(name, out)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return done


def _inputs(table: Table, columns: list[str]) -> Iterator[list[str]]:
    """The texts of every row, a text per role."""
    for row in table.rows(columns):
        texts = [str(cell) for cell in row.cells]
        if not all(text.strip() for text in texts):
            raise DataError(
                "the text is empty", where=f"{table.path}:{row.line}", do="remove the row or fill the text in"
            )
        yield texts


def _lines(module: TaskModule, rows: Iterator[list[str]], shape: str, done: Answered) -> Iterator[str]:
    """The file's lines, a header first where the shape has one; counts into `done`."""
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        done.cut += module.cut(chunk)
        for texts, answer in zip(chunk, module.predict(chunk), strict=True):
            named = dict(zip(module.roles, texts, strict=True)) | answer
            flat = _flat(named)
            if shape != "jsonl" and not done.rows:
                yield _delimited(list(flat), shape)
            done.rows += 1
            if shape == "jsonl":
                yield json.dumps(named, ensure_ascii=False)
            else:
                yield _delimited([str(value) for value in flat.values()], shape)


def _columns(module: TaskModule, table: Table, named: Mapping[str, str]) -> list[str]:
    """The columns that hold the module's inputs: those `named`, else those called like the roles.

    `sentence` serves for `text`.
    """
    for role in named:
        if role not in module.roles:
            raise ConfigError(
                f"this module has no {role}", got=_flag(role), expected=" and ".join(map(_flag, module.roles))
            )
    if module.roles == ("text",) and not named and "text" not in table.header and "sentence" in table.header:
        return ["sentence"]
    for role in module.roles:
        column = named.get(role, role)
        if column not in table.header:
            near = nearest(column, table.header)
            raise DataError(
                f"no column {column!r}",
                where=f"{table.path}:1",
                got=f"columns: {', '.join(table.header)}",
                expected=f"columns called {' and '.join(module.roles)}"
                if len(module.roles) > 1
                else f"a column called {role}",
                do=f"did you mean {_flag(role)} {near}?" if near else f"name it: {_flag(role)} COLUMN",
            )
    return [named.get(role, role) for role in module.roles]


def _flag(role: str) -> str:
    """`text_a` is `--text-a`."""
    return f"--{role.replace('_', '-')}"


def _flat(answer: dict[str, Any]) -> dict[str, Any]:
    """Probabilities become columns; several labels are joined by `|`, as they are read."""
    flat = {key: value for key, value in answer.items() if key != "probabilities"}
    if isinstance(flat.get("label"), list):
        flat["label"] = "|".join(flat["label"])
    return flat | {f"p({label})": chance for label, chance in answer.get("probabilities", {}).items()}


def _delimited(values: list[str], shape: str) -> str:
    if shape == "tsv":  # never quoted: a tab or line end inside a text becomes a space
        return "\t".join(" ".join(value.split()) for value in values)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerow(values)  # what ends a line is what gets quoted
    return stream.getvalue().removesuffix("\r\n")
