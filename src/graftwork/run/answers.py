"""Answers to a file of texts, streamed: a chunk is read, answered and written before the next."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from graftwork.data.table import Table, open_table
from graftwork.errors import ConfigError, DataError, nearest
from graftwork.files import storage_errors
from graftwork.run.task_module import TaskModule

ROWS_AT_ONCE = 1024


def answer_file(module: TaskModule, source: Path, out: Path | None, echo: Callable[[str], None]) -> int:
    """Answer every row of `source`; into `out` (whole or not at all), or line by line through `echo`. Returns the rows.

    Raises `DataError` for a bad row or a missing column, `ConfigError` for a suffix that is not known.
    """
    shape = out.suffix.lstrip(".") if out else "jsonl"
    if shape not in ("jsonl", "csv", "tsv"):
        raise ConfigError("unknown kind of file", where=str(out), expected=".jsonl, .csv or .tsv")
    lines = _lines(module, source, shape)
    if out is None:
        count = 0
        for count, line in enumerate(lines, 1):
            echo(line)
        return count
    with storage_errors(out):
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                written = 0
                for line in lines:
                    stream.write(line + "\n")
                    written += 1
            os.chmod(name, 0o644)
            os.replace(name, out)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return written if shape == "jsonl" else max(0, written - 1)  # the header is no answer


def _lines(module: TaskModule, source: Path, shape: str) -> Iterator[str]:
    table = open_table(source)
    columns = _columns(module, table)
    rows = table.rows(columns)
    first = True
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        for row in chunk:
            if not all(str(cell).strip() for cell in row.cells):
                raise DataError("empty text", where=f"{source}:{row.line}", do="fill it in or remove the row")
        inputs = [[str(cell) for cell in row.cells] for row in chunk]
        for values, answer in zip(inputs, module.predict(inputs), strict=True):
            named = dict(zip(module.roles, values, strict=True)) | answer
            if shape == "jsonl":
                yield json.dumps(named, ensure_ascii=False)
                continue
            flat = _flat(named)
            if first:
                yield _delimited(list(flat), shape)
                first = False
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
                got=", ".join(table.header),
                expected=", ".join(module.roles),
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
    csv.writer(stream, lineterminator="").writerow(values)
    return stream.getvalue()
