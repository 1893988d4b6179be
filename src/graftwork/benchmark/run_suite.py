"""`benchmark`: runs `compare` on every task of a suite, adds published scores and writes the submission files."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from graftwork.benchmark.official import ConvertedTask, write_task
from graftwork.benchmark.published_scores import PublishedEntry, best_on_validation, of_published, over_tasks, spread
from graftwork.compare.leaderboard import SEEDS, choose_methods, compare
from graftwork.compare.leaderboard_display import Leaderboard
from graftwork.compare.majority_floor import MAJORITY
from graftwork.core.example import Example
from graftwork.core.part_settings import split_words
from graftwork.core.progress import Progress, part_of, silent
from graftwork.core.suite import OfficialTask, Row, Source, Suite
from graftwork.errors import ConfigError, StorageError, UnknownName
from graftwork.evaluate.score import scores_on
from graftwork.io.files import read_toml, storage_errors, write_json, writing
from graftwork.module.predict_many import answer_windows
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds, suites
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings
from graftwork.run.store import read_result

FORMAT = 1
PUBLISHED = Path(__file__).with_name("published.toml")
CHOSEN = "best on validation"


@dataclass(frozen=True)
class Benchmark:
    """The result of a benchmark. `content` is exactly the content of `benchmark.json`."""

    content: Mapping[str, Any]
    folder: Path


@takes_settings
def benchmark(
    suite: str,
    folder: str | Path,
    *,
    tasks: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    seeds: int = SEEDS,
    limit: int | None = None,
    exhaustive: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    **given: Unpack[GivenSettings],
) -> Benchmark:
    """Compare methods on the tasks of `suite` (default: all whose official files are in `folder`), as `compare` does.

    Where the official test labels are not public, the dev files are the test split. Choices are made on the official
    validation split, or on one drawn from train. With `limit`, at most that many rows of each labelled file are used
    and no submission is written. `majority` is always included. `out` (default `boards/<suite>`) receives
    `benchmark.json`, the boards, the rows as JSONL, and `submission/`.

    Raises `GraftworkError` for bad data or settings, before anything is trained.
    """
    part, folder, out = suites.get(suite), Path(folder), Path(out if out is not None else f"boards/{suite}")
    if limit is not None and limit < 1:
        raise ConfigError("--limit must be at least 1", got=str(limit))
    chosen = _methods(methods)
    asked, left_out = _tasks(part, folder, None if tasks is None else split_words(tasks))
    written = [write_task(task, out / "data" / task.name, limit) for task in asked]
    setup = RunSettings.of(given)
    runs, device = Path(setup.runs), setup.device
    call = partial(compare, methods=chosen, seeds=seeds, exhaustive=exhaustive, jobs=jobs, **given)
    boards, entries = {}, {}
    for place, task in enumerate(written):
        name = task.official.name
        boards[name] = call(task.task, out=out / name, progress=part_of(progress, place, len(written), name))
        entries[name] = _entries(boards[name].rows, task, runs, device)
    best = {name: found for name, listed in entries.items() if (found := best_on_validation(listed)) is not None}
    asked_for = {"suite": suite, "title": part.title, "backbone": setup.backbone, "seeds": seeds, "limit": limit}
    content: dict[str, Any] = asked_for | {
        "format": FORMAT,
        "hidden": part.hidden,
        "tasks": {task.official.name: _described(task, boards[task.official.name]) for task in written},
        "left_out": left_out,
        "rows": _rows(entries, best),
        "chosen": {name: entry.method for name, entry in best.items()},
        "published": _published(suite, {task.official.name: _columns(task.official) for task in written}),
        "submission": None if limit is not None else _submission(part, written, best, runs, device, out),
    }
    write_json(out / "benchmark.json", content)
    return Benchmark(content, out)


def _methods(words: str | Sequence[str] | None) -> list[str] | None:
    """Return the requested methods plus the majority class; None for the default methods."""
    if words is None:
        return None
    words = split_words(words)
    given = {item.label for item in choose_methods(words)}
    return [*words, MAJORITY] if MAJORITY not in given else words


def _tasks(suite: Suite, folder: Path, names: Sequence[str] | None) -> tuple[list[OfficialTask], dict[str, str]]:
    """Return the tasks that can run, and the others with the reasons why not.

    Raises `UnknownName` for a name that the suite lacks, `ConfigError` for a task requested by name that can't run,
    `StorageError` for a missing folder or if no task can run.
    """
    if not folder.is_dir():
        raise StorageError("no such folder", where=str(folder), do=f"name the folder with the files of {suite.title}")
    known = {task.name: task for task in suite.tasks(folder)}
    listed = {name.lower(): name for name in (*known, *suite.left_out)}
    for name in names or ():
        if name.lower() not in listed:
            raise UnknownName("task", name, listed.values())
    wanted = [listed[name.lower()] for name in names] if names is not None else list(listed.values())
    reasons = {name: _why_not(known.get(name), folder) or suite.left_out.get(name, "") for name in wanted}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    if names is not None and left_out:
        name, reason = next(iter(left_out.items()))
        raise ConfigError(
            f"the task {name} can't run: {reason}",
            where=str(folder),
            do="leave it out of --tasks, or unpack its files there",
        )
    asked = [known[name] for name in wanted if name not in left_out]
    if not asked:
        raise StorageError(
            f"no task of {suite.title} is here: {'; '.join(why for name, why in left_out.items() if name in known)}",
            where=str(folder),
            got=", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "an empty folder",
            do="unpack the official files there as they are",
        )
    return asked, left_out


def _why_not(task: OfficialTask | None, folder: Path) -> str:
    if task is None:
        return ""
    if task.kind not in kinds.names():
        return f"there is no kind {task.kind!r} yet"
    missing = [str(path.relative_to(folder)) for path in task.missing()]
    return f"no {' and no '.join(missing)}" if missing else ""


def _columns(task: OfficialTask) -> list[str]:
    """Return the table's column names of a task: `MNLI-m accuracy`."""
    return [f"{test} {metric}" for test in task.tests for metric in task.metrics]


def _described(task: ConvertedTask, board: Leaderboard) -> dict[str, Any]:
    return {
        "columns": _columns(task.official),
        "positive": task.official.positive,
        "rows": dict(board.content["task"]["rows"]),
        "validation": "drawn" if task.official.validation is None else "official",
        "broken_rows": task.broken,
        "note": task.official.note,
        "board": str(board.folder),
    }


def _entries(rows: Sequence[Mapping[str, Any]], task: ConvertedTask, runs: Path, device: str) -> list[PublishedEntry]:
    """Return the entries of a board's rows; failed runs count as the majority class, as in the board's ranking."""
    floor = next((_entry(row, task, runs, device, None) for row in rows if row["method"] == MAJORITY), None)
    return [_entry(row, task, runs, device, floor) for row in rows]


def _entry(
    row: Mapping[str, Any], task: ConvertedTask, runs: Path, device: str, floor: PublishedEntry | None
) -> PublishedEntry:
    """Return the entry of a board's row; its modules are scored on further test sets, failed runs count as `floor`."""
    if not row["scores"]:
        return PublishedEntry(row["method"], row["status"], {}, float("nan"), {})
    results = [read_result(runs / run_id / "result.json") for run_id in row["runs"]]
    done = [result for result in results if result.status == "ok" and result.scores]
    first, *further = task.official.tests
    scores = {f"{first} {name}": {run.seed: run.scores[name] for run in done} for name in task.official.metrics}
    for test in further:
        found = {
            run.seed: scores_on(TaskModule.load(runs / run.id, device=device), task.task, task.tests[test])
            for run in done
        }
        scores |= {f"{test} {name}": {seed: of[name] for seed, of in found.items()} for name in task.official.metrics}
    validation = [run.validation[task.official.metrics[0]] for run in done]
    failed = [run.seed for run in results if run not in done]
    if floor is not None and floor.scores:
        for column, of in floor.scores.items():
            scores[column] |= dict.fromkeys(failed, statistics.fmean(of.values()))
        validation += [floor.validation] * len(failed)
    ids = {run.seed: run.id for run in done}
    return PublishedEntry(row["method"], row["status"], scores, statistics.fmean(validation), ids, len(failed))


def _rows(entries: Mapping[str, Sequence[PublishedEntry]], best: Mapping[str, PublishedEntry]) -> list[dict[str, Any]]:
    """Return a row for the best method on validation per task, then one row per method, the best mean first."""
    of_method: dict[str, dict[str, PublishedEntry]] = {}
    for task, listed in entries.items():
        for entry in listed:
            of_method.setdefault(entry.method, {})[task] = entry
    rows = [_row(method, found, len(entries)) for method, found in of_method.items()]
    rows.sort(key=lambda row: (-row["mean"]["mean"] if "mean" in row else 0.0, row["method"]))
    rows.sort(key=lambda row: "mean" not in row)
    return [_row(CHOSEN, best, len(entries)), *rows]


def _row(name: str, found: Mapping[str, PublishedEntry], tasks: int) -> dict[str, Any]:
    scores = {column: spread(seeds) for entry in found.values() for column, seeds in entry.scores.items()}
    whole = over_tasks(list(found.values())) if len(found) == tasks else {}
    told = {
        "status": {task: entry.status for task, entry in found.items()},
        "n_failed": {task: entry.n_failed for task, entry in found.items()},
    }
    return {"method": name, **told, "scores": scores} | whole


def _published(suite: str, tasks: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return the published rows that have a score for a column of the table."""
    columns = {column for listed in tasks.values() for column in listed}
    rows = [row for row in read_toml(PUBLISHED).get(suite, ()) if columns & row["scores"].keys()]
    return [row | of_published(row["scores"], tasks) for row in rows]


def _submission(
    suite: Suite, tasks: Sequence[ConvertedTask], best: Mapping[str, PublishedEntry], runs: Path, device: str, out: Path
) -> dict[str, Any] | None:
    """Write the predictions for the unlabelled files, by the chosen method's first seed, and list the files.

    Returns None if the suite has no submission format.
    """
    if suite.hand_in is None:
        return None
    written, missing = [], []
    for task in tasks:
        entry = best.get(task.official.name)
        for name, source in task.official.unlabelled.items():
            if entry is None or not source.path.is_file():
                missing.append(name)
                continue
            module = runs / entry.runs[min(entry.runs)]
            _write_answers(
                module, task.official, source, partial(suite.hand_in, name), out / "submission" / name, device
            )
            written.append(name)
    return {"folder": str(out / "submission"), "files": written, "missing": missing}


def _write_answers(
    run: Path,
    task: OfficialTask,
    source: Source,
    lines: Callable[[Iterable[tuple[Row, Any]]], Iterator[str]],
    path: Path,
    device: str,
) -> None:
    """Predict every row of `source` with a run's module; write the `lines` of (row, prediction) pairs to `path`."""
    module = TaskModule.load(run, device=device)
    rows = [row for row in source.read() if row is not None]
    if task.ask is not None:
        examples = module.examples([task.ask(row) for row in rows])
    else:  # not `module.examples`: rows whose text is missing in the official file need a prediction too
        examples = [Example(f"row/{row['index']}", {role: row[role] for role in module.roles}) for row in rows]
    answers = (answer for window in answer_windows([module], examples) for answer in window.answers[0])
    answered = ((row, next(iter(answer.values()))) for row, answer in zip(rows, answers, strict=True))
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        for line in lines(answered):
            stream.write(f"{line}\n".encode())
