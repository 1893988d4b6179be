"""Streaming prediction for a file of texts: the whole file is checked first, then read again."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftwork.core.example import Example, Input
from graftwork.core.media import Media
from graftwork.core.progress import Progress, silent
from graftwork.data.readers.rejects import Bad, Rejects, file_changed, require_apart, write_rejects
from graftwork.errors import ConfigError
from graftwork.io.files import writing
from graftwork.module.abstaining import ANSWER_ALL, Abstaining, unsure
from graftwork.module.file_rows import rows_for
from graftwork.module.kept_columns import kept_of, line_of, rows_with
from graftwork.module.predict_many import RowWindow, answer_windows, check_roles
from graftwork.module.task_module import TaskModule

SHAPES = ("jsonl", "csv", "tsv")
CHECKED_AT_ONCE = 50_000  # rows between two progress reports
_SPACED = str.maketrans("\t\r\n", "   ")


@dataclass
class RowCounts:
    """Row counts of an answered file."""

    rows: int = 0
    cut: int = 0  # truncated rows
    rejected: int = 0  # unreadable rows, without an answer
    unsure: list[int] = field(default_factory=list)  # per module, the answers withheld


def answer_file(
    modules: Sequence[TaskModule],
    source: Path,
    out: Path | None,
    echo: Callable[[str], None],
    progress: Progress = silent,
    columns: Mapping[str, str] | None = None,
    rejects: Path | None = None,
    abstaining: Abstaining = ANSWER_ALL,
    keep: Sequence[str] = (),
) -> RowCounts:
    """Predict for every row of `source`, into `out` (atomically) or line by line through `echo`.

    Fields of the first module's answers keep their names; those of the others are prefixed with their task's name.
    `columns` (role -> column) names the columns as for `rows_for`. Memory does not grow with the rows. Unreadable rows
    go to `rejects`, if given, and have no answer; the answers then include their `line`.
    `abstaining` withholds unsure answers. The columns `keep` of `source` are repeated before each answer; a part of
    the answer with the name of one of them is called `predicted.NAME`.

    Raises `DataError` for a bad row or a missing column, `ConfigError` for an unknown suffix, for modules with
    different inputs or equal names, or as `rows_with`.
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
            "--file and --out are the same file", where=str(out), do="write the predictions to another file"
        )
    require_apart(str(rejects) if rejects else None, {"given": source} | ({"answers": out} if out else {}))
    check_roles(modules)
    prefixes = prefixes_of(modules)
    read = rows_for(modules[0], source, columns or {})
    if keep:
        read = rows_with(keep, read, source, modules[0].roles)
    bad = Rejects(aside=rejects is not None)
    total = _check(read(), bad, progress)
    if rejects is not None:
        write_rejects(rejects, bad.found)
    bad.require_rows(source, total)
    done = RowCounts(rejected=len(bad.found), unsure=[0] * len(modules))
    found = answer_windows(modules, _good(read(), bad, source), abstaining)
    if out is None:
        for window in found:
            for line in _lines(window, prefixes, shape, done, bad.aside):
                echo(line)
        return done
    with writing(out) as stream:
        for window in found:
            stream.write("".join(f"{line}\n" for line in _lines(window, prefixes, shape, done, bad.aside)).encode())
            progress(done.rows / total, f"{done.rows:,} of {total:,} rows")
    return done


def prefixes_of(modules: Sequence[TaskModule]) -> list[str]:
    """Return the prefix of the fields of each module's answers: "" for the first, `task.` for the others.

    Raises `ConfigError` if two of the others have the same name.
    """
    names = [module.task.name for module in modules[1:]]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ConfigError(
                f"two modules have the task {name!r}: their predictions would have the same name",
                do="predict with one of them in a separate command",
            )
    return ["", *(f"{name}." for name in names)]


def inputs_as_json(example: Example) -> dict[str, Any]:
    """Return the inputs of an example as JSON, with the source text instead of its words."""
    if "question" in example.inputs and example.source is not None:
        return {"question": example.inputs["question"], "context": example.source}
    if example.source is not None:
        return {"text": example.source}
    return {role: _as_json(given) for role, given in example.inputs.items()}


def _as_json(given: Input | Media) -> str | list[str]:
    if isinstance(given, Media):
        return given.path
    return given if isinstance(given, str) else list(given)


def merge_answers(
    inputs: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any]],
    prefixes: Sequence[str],
    kept: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Merge the cells `kept` of a row, the inputs and every module's answer under its prefix.

    Of equal names a kept cell counts before an input, and a part of an answer is then called `predicted.NAME`.
    """
    kept = kept or {}
    named = {**kept, **inputs, **kept}
    for answer, prefix in zip(answers, prefixes, strict=True):
        for key, value in answer.items():
            name = f"{prefix}{key}"
            named[f"predicted.{name}" if name in kept else name] = value
    return named


def _check(examples: Iterator[Example | Bad], bad: Rejects, progress: Progress) -> int:
    """Read the whole file to find bad rows before the prediction starts; return the number of good rows."""
    rows = 0
    for number, example in enumerate(examples, 1):
        if isinstance(example, Bad):
            bad.refuse(example)
        else:
            rows += 1
        if number % CHECKED_AT_ONCE == 0:
            progress(0.0, f"{number:,} rows checked")
    return rows


def _good(examples: Iterator[Example | Bad], known: Rejects, source: Path) -> Iterator[Example]:
    """Yield the good rows. Raises `DataError` if the number of bad rows is not that of `known`."""
    again = Rejects(aside=known.aside)
    for example in examples:
        if isinstance(example, Bad):
            again.refuse(example)
        else:
            yield example
    if len(again.found) != len(known.found):
        raise file_changed(source)


def _lines(window: RowWindow, prefixes: Sequence[str], shape: str, done: RowCounts, placed: bool) -> list[str]:
    """Format a window's lines, after a header at the start of a delimited file; update the counts in `done`.

    If `placed`, each answer starts with the line number of its row, or the row's number if the file has no lines.
    """
    answers = zip(*window.answers, strict=True)
    rows = [
        ({"line": line_of(example)} if placed else {})
        | merge_answers(inputs_as_json(example), answer, prefixes, kept_of(example))
        for example, answer in zip(window.examples, answers, strict=True)
    ]
    first = not done.rows
    done.rows += len(rows)
    done.cut += window.cut
    done.unsure = [known + sum(map(unsure, own)) for known, own in zip(done.unsure, window.answers, strict=True)]
    if shape == "jsonl":
        return [json.dumps(row, ensure_ascii=False) for row in rows]
    flat = [_flat(row) for row in rows]
    header = [list(flat[0])] if first else []
    return _delimited([*header, *([str(value) for value in row.values()] for row in flat)], shape)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten an answer: probabilities become columns `p(label)`, several labels are joined by `|`, lists stay JSON."""
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
    if shape == "tsv":  # never quoted: each tab or line end becomes one space, which preserves offsets
        return ["\t".join(value.translate(_SPACED) for value in row) for row in rows]
    lines = _Lines()
    csv.writer(lines, lineterminator="\r\n").writerows(rows)  # characters of the line terminator are quoted
    return lines.written


class _Lines:
    """A file-like object that collects the lines of a `csv.writer`, without their line ends."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> None:
        self.written.append(line.removesuffix("\r\n"))
