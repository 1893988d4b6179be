"""The catalogue of a bank's tasks and their inputs: an immutable view, rebuilt whenever the bank changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graftwork.errors import nearest
from graftwork.module.inputs import TAKEN_BY
from graftwork.serve.http_errors import HttpRefusal

SEARCHED = 100  # maximum number of task names for a search of the nearest one


@dataclass(frozen=True)
class Listed:
    """A task as shown to clients. `description` is the content of its `module.json`."""

    name: str
    version: int
    bytes: int
    description: Mapping[str, Any]
    folder: Path  # of this version
    has_board: bool

    @property
    def roles(self) -> tuple[str, ...]:
        """The inputs that its module takes."""
        return tuple(self.description["roles"])

    @cached_property
    def inputs(self) -> list[list[str]]:
        """The inputs that a client may send, each a list of names; none for a task over files."""
        return [sorted(names) for names, roles in TAKEN_BY.items() if self.roles in roles]

    @property
    def longest(self) -> int | None:
        """Maximum tokens per sequence of its backbone; None without a backbone."""
        backbone = self.description["backbone"]
        return None if backbone is None else int(backbone["max_length"])

    def told(self) -> dict[str, Any]:
        """Return its entry in `GET /v1/tasks`."""
        question = self.description["task"]
        return {
            "name": self.name,
            "kind": question["kind"],
            "inputs": self.inputs,
            "labels": list(question["labels"]),
            "method": self.description["method"],
            "version": self.version,
            "scores": self.description["scores"],
            "positive": question.get("positive"),
            "costs": self.description.get("costs"),
            "bytes": self.bytes,
            "trained_parameters": self.description.get("trained_parameters"),
            "has_board": self.has_board,
        }


@dataclass(frozen=True)
class Catalogue:
    """The served tasks, and those in the bank that could not be opened."""

    tasks: Mapping[str, Listed]
    failed: Mapping[str, str]  # name -> error message without paths

    @cached_property
    def taking(self) -> Mapping[frozenset[str], tuple[str, ...]]:
        """Set of input names -> the tasks that take them."""
        return {
            names: tuple(task.name for task in self.tasks.values() if task.roles in roles)
            for names, roles in TAKEN_BY.items()
        }

    def named(self, name: str, where: str) -> Listed:
        """Return a task. Raises `HttpRefusal`: 404 for an unknown name, 503 for a task that could not be opened.

        503, as the request is valid and may be repeated when the task has been repaired.
        """
        if name in self.tasks:
            return self.tasks[name]
        if name in self.failed:
            what = f"the task {name!r} could not be opened: {self.failed[name]}"
            raise HttpRefusal(503, what, where=where, do="other tasks answer; tell who keeps the bank", retry_after=60)
        raise unknown_task(name, self.tasks, where)


def unknown_task(name: str, known: Collection[str], where: str) -> HttpRefusal:
    """Return a 404 with the nearest name, which is not searched among very many: an error must be cheap."""
    name = name[:64]
    near = nearest(name, known) if len(known) <= SEARCHED else None
    do = f"did you mean {near!r}?" if near else "GET /v1/tasks lists them"
    return HttpRefusal(404, "no such task", where=where, got=name, do=do)
