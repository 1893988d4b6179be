"""The catalogue of a bank's tasks and their inputs: an immutable view, rebuilt whenever the bank changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graftwork.bank.task_version import TaskEntry
from graftwork.errors import nearest
from graftwork.module.inputs import TAKEN_BY
from graftwork.serve.http_errors import HttpRefusal

SEARCHED = 100  # maximum number of task names for a search of the nearest one


def inputs_of(task: TaskEntry) -> list[list[str]]:
    """Return the inputs that a client may send, each a list of names; none for a task over files."""
    return [sorted(names) for names, roles in TAKEN_BY.items() if task.roles in roles]


def longest(task: TaskEntry) -> int | None:
    """Return the maximum tokens per sequence of the task's backbone; None without a backbone."""
    backbone = task.description["backbone"]
    return None if backbone is None else int(backbone["max_length"])


def told_of(task: TaskEntry) -> dict[str, Any]:
    """Return the entry of a task in `GET /v1/tasks`."""
    return task.as_json() | {"inputs": inputs_of(task), "costs": task.description.get("costs")}


@dataclass(frozen=True)
class Catalogue:
    """The served tasks, and those in the bank that could not be opened."""

    tasks: Mapping[str, TaskEntry]
    failed: Mapping[str, str]  # name -> error message without paths
    by_version: Mapping[str, TaskEntry] = field(default_factory=dict)  # `TASK@VERSION` -> a stored version of a task

    def others(self, task: TaskEntry) -> list[TaskEntry]:
        """Return the stored versions of a task but this one."""
        base = task.name.partition("@")[0]
        named = [one for name, one in self.by_version.items() if name.partition("@")[0] == base]
        return [one for one in named if one.version != task.version]

    @cached_property
    def taking(self) -> Mapping[frozenset[str], tuple[str, ...]]:
        """Set of input names -> the tasks that take them."""
        return {
            names: tuple(task.name for task in self.tasks.values() if task.roles in roles)
            for names, roles in TAKEN_BY.items()
        }

    def named(self, name: str, where: str) -> TaskEntry:
        """Return a task, or a version of it. Raises `HttpRefusal`: 404 for an unknown name, 503 for an unopened task.

        503, as the request is valid and may be repeated when the task has been repaired.
        """
        if name in self.tasks:
            return self.tasks[name]
        if name in self.by_version:
            return self.by_version[name]
        if name in self.failed:
            what = f"the task {name!r} could not be opened: {self.failed[name]}"
            raise HttpRefusal(
                503,
                what,
                where=where,
                do="ask whoever runs the server to repair it; other tasks still answer",
                retry_after=60,
            )
        raise unknown_task(name, self.by_version if "@" in name else self.tasks, where)


def unknown_task(name: str, known: Collection[str], where: str) -> HttpRefusal:
    """Return a 404 with the nearest name, which is not searched among very many: an error must be cheap."""
    name = name[:64]
    near = nearest(name, known) if len(known) <= SEARCHED else None
    do = f"did you mean {near!r}?" if near else "GET /v1/tasks lists them"
    return HttpRefusal(404, "no such task", where=where, got=name, do=do)
