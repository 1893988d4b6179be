"""`compare_tasks`: a board of `compare` for each of several tasks, and one over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

from graftwork.compare.leaderboard import SEEDS, chosen_methods, command_line, compare
from graftwork.compare.leaderboard_display import Leaderboard
from graftwork.compare.tasks_data import over_tasks
from graftwork.compare.tasks_report import render_tasks
from graftwork.compare.tasks_table import headings, summary_cells, summary_lines
from graftwork.compare.workers import runs_at_once
from graftwork.core.in_memory import beside
from graftwork.core.progress import Progress, part_of, silent
from graftwork.core.task import Task, read_task_file
from graftwork.data.readers.hub_datasets import SCHEME
from graftwork.data.splits.split_folder import require_outside
from graftwork.errors import ConfigError, GraftworkError, UnknownName
from graftwork.io.display import card, table
from graftwork.io.files import finite, require_writable, storage_errors, write_json, write_text
from graftwork.machine.environment import environment
from graftwork.run.session import settle_numerics
from graftwork.run.settings import GivenSettings, RunSettings, over, takes_settings
from graftwork.train.recipe import require_sense
from graftwork.train.seeds import chosen_sources
from graftwork.units import several

OUT = Path("boards") / "tasks"

TaskWithSettings = tuple[Task, Mapping[str, Any]]  # a task, and the arguments of `compare` for it


@dataclass(frozen=True, repr=False)
class TasksBoard:
    """The result of `compare_tasks`. `content` is exactly the content of `tasks.json`."""

    content: Mapping[str, Any]
    folder: Path
    boards: Mapping[str, Leaderboard]  # task name -> its board, for the tasks that did not fail

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """A row per method, highest mean first; methods without a score on every task come last."""
        return list(self.content["rows"])

    def __repr__(self) -> str:
        return "\n".join([*summary_lines(self.content), f"In {self.folder}, tasks.html shows it all."])

    def _repr_html_(self) -> str:
        listed = table(headings(self.content), [summary_cells(row) for row in self.rows])
        return card(f"{self.folder.name}: {several(len(self.boards), 'task')}", (), listed,
                    about=f"In {self.folder}, tasks.html shows it all.")  # fmt: skip


@takes_settings
def compare_tasks(
    tasks: Sequence[Any],
    *,
    against: str | None = None,
    methods: str | Sequence[str] | None = None,
    seeds: int | None = None,
    exhaustive: bool | None = None,
    no_transfer: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    **setup: Unpack[GivenSettings],
) -> TasksBoard:
    """Compare methods on each of `tasks` (tasks, task files, or what `Task.from_data` takes), then over all of them.

    Arguments given here take precedence over a task file's settings of its comparison (backbone, methods, seeds …),
    and these over the defaults of `compare`. Ratios of scores are to the method labelled `against` (default: `full`).
    `out` (default `boards/tasks`) receives `tasks.json`, `tasks.html` and a folder for the board of each task.

    A failed task is listed, and counts in no summary. Raises `GraftworkError` for bad settings, before any run.
    """
    told = {"methods": methods, "seeds": seeds, "exhaustive": exhaustive, "jobs": jobs}
    given = {key: value for key, value in told.items() if value is not None} | {"no_transfer": no_transfer, **setup}
    asked = []
    for task in tasks:
        is_file = isinstance(task, str | Path) and str(task).endswith(".toml")
        settings = read_task_file(Path(task))[1] if is_file else {}
        if not isinstance(task, Task):
            task = Task.from_data(task, folder=beside(setup.get("runs") or RunSettings.runs))
        asked.append((task, {"seeds": SEEDS, **settings, **given, **over(settings, setup)}))
    return compare_each(asked, against=against, out=out, progress=progress)


def compare_each(
    asked: Sequence[TaskWithSettings],
    *,
    against: str | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> TasksBoard:
    """Run `compare_tasks` with separate arguments of `compare` for each task."""
    folder, listed = Path(out if out is not None else OUT), _named_apart(asked)
    listed = [(task, {**settings, "out": settings.get("out") or folder / task.name}) for task, settings in listed]
    _check(listed, against)
    require_writable(folder)
    boards: dict[str, Leaderboard] = {}
    failed: dict[str, str] = {}
    for place, (task, settings) in enumerate(listed):
        try:
            boards[task.name] = compare(task, **settings, progress=part_of(progress, place, len(listed), task.name))
        except GraftworkError as error:
            failed[task.name] = error.message
    content = over_tasks({name: board.content for name, board in boards.items()}, failed, against)
    where = {name: str(board.folder) for name, board in boards.items()}
    content = finite(
        content
        | {"name": folder.name, "boards": where, "command": command_line(), "environment": environment()}
        | {"tasks": [entry | {"board": where.get(entry["name"])} for entry in content["tasks"]]}
    )
    write_json(folder / "tasks.json", content)
    write_text(folder / "tasks.html", render_tasks(content, folder))
    return TasksBoard(content, folder, boards)


def _check(listed: Sequence[TaskWithSettings], against: str | None) -> None:
    """Raise `GraftworkError` for errors that can be detected before any run."""
    if not listed:
        raise ConfigError("no task is named", expected="two data files or task files, or more")
    labels: set[str] = set()
    for task, settings in listed:
        for path in (task.data, task.validation, task.test):
            if path is not None and not str(path).startswith(SCHEME):
                with storage_errors(path):
                    path.stat()
        if settings["seeds"] < 1:
            raise ConfigError("seeds must be at least 1", got=str(settings["seeds"]))
        setup = RunSettings.of(
            cast(GivenSettings, {name: settings.get(name) for name in GivenSettings.__annotations__})
        )
        chosen = chosen_methods(settings.get("methods"), bool(settings.get("no_transfer")))
        runs_at_once(settings.get("jobs"), settle_numerics(setup, chosen)[1])
        require_outside(task, [setup.runs, settings["out"]])
        require_sense(setup.recipe)
        chosen_sources(settings.get("vary"))
        labels |= {item.label for item in chosen}
    _require_apart("out", {task.name: settings["out"] for task, settings in listed})
    _require_apart("rejects", {task.name: task.rejects for task, _ in listed if task.rejects is not None})
    if against is not None and against not in labels:
        raise UnknownName("method of these comparisons", against, sorted(labels))


def _require_apart(key: str, paths: Mapping[str, str | Path]) -> None:
    """Raise `ConfigError` if two tasks would write to the same path."""
    first: dict[Path, str] = {}
    for name, path in paths.items():
        other = first.setdefault(Path(path).resolve(), name)
        if other != name:
            raise ConfigError(
                f"tasks {other} and {name} would overwrite each other's {key}",
                where=str(path),
                do=f'name another in one of their task files: {key} = "…"',
            )


def _named_apart(asked: Sequence[TaskWithSettings]) -> list[TaskWithSettings]:
    """Prefix the names of tasks that share a name (`train` in several folders) with their folder's name.

    Raises `ConfigError` if names are still equal.
    """
    counts = Counter(task.name for task, _ in asked)
    apart = [
        (replace(task, name=f"{task.data.absolute().parent.name}_{task.name}") if counts[task.name] > 1 else task, said)
        for task, said in asked
    ]
    twice = [name for name, count in Counter(task.name for task, _ in apart).items() if count > 1]
    if twice:
        raise ConfigError(
            "two tasks have the same name", got=", ".join(twice), do='give each a task file with a line name = "…"'
        )
    return apart
