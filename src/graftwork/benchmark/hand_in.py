"""What finished modules say to rows they were not scored on: further test sets, and files without labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.kind import OfChoices
from graftwork.core.metric import score
from graftwork.core.suite import OfficialTask, Row, Source
from graftwork.core.task import Task
from graftwork.data.columns import find_columns
from graftwork.data.load import read_records
from graftwork.data.table import open_table
from graftwork.files import storage_errors, writing
from graftwork.registry import kinds, metrics
from graftwork.run.bulk import answer_windows
from graftwork.run.task_module import TaskModule


def score_rows(run: Path, task: Task, path: Path, device: str) -> dict[str, float]:
    """Metric -> score of a run's module on the labelled rows of a file."""
    module, kind = TaskModule.load(run, device=device), kinds.get(task.kind)
    found = task if isinstance(kind, OfChoices) else find_columns(task, open_table(path), kind.per_word)
    records = read_records(found, kind, path)
    examples = [Example(f"row/{record.row}", record.inputs, record.target) for record in records]
    targets = kind.encode([example.target for example in examples], module.task)
    predictions = kind.predictions(module.fitted.logits(examples), module.task)
    return {name: score(metrics.get(name), targets, predictions, module.task) for name in module.task.metrics}


def write_answers(
    run: Path,
    task: OfficialTask,
    source: Source,
    lines: Callable[[Iterable[tuple[Row, Any]]], Iterator[str]],
    path: Path,
    device: str,
) -> None:
    """Answer every row of `source` with a run's module and write `lines` of rows and answers to `path`."""
    module = TaskModule.load(run, device=device)
    rows = [row for row in source.read() if row is not None]
    if task.ask is not None:
        examples = module.examples([task.ask(row) for row in rows])
    else:  # not by `module.examples`: a text that the distribution has lost is answered too
        examples = [Example(f"row/{row['index']}", {role: row[role] for role in module.roles}) for row in rows]
    answers = (answer for window in answer_windows([module], examples) for answer in window.answers[0])
    answered = ((row, next(iter(answer.values()))) for row, answer in zip(rows, answers, strict=True))
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        for line in lines(answered):
            stream.write(f"{line}\n".encode())
