"""Submission files: predictions of finished modules for unlabelled rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.suite import OfficialTask, Row, Source
from graftwork.io.files import storage_errors, writing
from graftwork.module.predict_many import answer_windows
from graftwork.module.task_module import TaskModule


def write_answers(
    run: Path,
    task: OfficialTask,
    source: Source,
    lines: Callable[[Iterable[tuple[Row, Any]]], Iterator[str]],
    path: Path,
    device: str,
) -> None:
    """Predict every row of `source` with a run's module and write `lines` of rows and answers to `path`."""
    module = TaskModule.load(run, device=device)
    rows = [row for row in source.read() if row is not None]
    if task.ask is not None:
        examples = module.examples([task.ask(row) for row in rows])
    else:  # not `module.examples`: rows whose text is missing in the distribution need an answer too
        examples = [Example(f"row/{row['index']}", {role: row[role] for role in module.roles}) for row in rows]
    answers = (answer for window in answer_windows([module], examples) for answer in window.answers[0])
    answered = ((row, next(iter(answer.values()))) for row, answer in zip(rows, answers, strict=True))
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        for line in lines(answered):
            stream.write(f"{line}\n".encode())
