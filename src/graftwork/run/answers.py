"""Answers to a file of texts, a chunk at a time: the whole file is checked before the first one."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
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
) -> Answered:
    """Answer every row of `source`; into `out` (whole or not at all), or line by line through `echo`.

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
    columns = _columns(module, table)
    total = sum(1 for _ in _inputs(table, columns))
    done = Answered()
    lines = _lines(module, _inputs(table, columns), shape, done)
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


def _columns(module: TaskModule, table: Table) -> list[str]:
    """The columns that hold the module's inputs; `sentence` serves for `text`."""
    if module.roles == ("text",) and "text" not in table.header and "sentence" in table.header:
        return ["sentence"]
    for role in module.roles:
        if role not in table.header:
            near = nearest(role, table.header)
            raise DataError(
                f"no column {role!r}",
                where=f"{table.path}:1",
                got=f"columns: {', '.join(table.header)}",
                expected=f"columns called {' and '.join(module.roles)}"
                if len(module.roles) > 1
                else f"a column called {role}",
                do=f"rename {near!r}?" if near else "rename the column that holds the text",
            )
    return list(module.roles)


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
