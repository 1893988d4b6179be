"""What a bank's tasks are called and take: one unchanging view, made anew whenever the bank changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graftwork.errors import nearest
from graftwork.module.inputs import TAKEN_BY
from graftwork.serve.http_errors import HttpRefusal

SEARCHED = 100  # task names, for the one nearest to an unknown one


@dataclass(frozen=True)
class Listed:
    """A task as a client sees it. `description` is the content of its `module.json`."""

    name: str
    version: int
    bytes: int
    description: Mapping[str, Any]
    folder: Path  # of this version
    has_board: bool

    @property
    def roles(self) -> tuple[str, ...]:
        """The inputs that its module wants."""
        return tuple(self.description["roles"])

    @cached_property
    def inputs(self) -> list[list[str]]:
        """The inputs that a client may send, each a list of names; none for a task over files."""
        return [sorted(names) for names, roles in TAKEN_BY.items() if self.roles in roles]

    @property
    def longest(self) -> int | None:
        """Tokens that its backbone reads of a sequence."""
        backbone = self.description["backbone"]
        return None if backbone is None else int(backbone["max_length"])

    def told(self) -> dict[str, Any]:
        """What `GET /v1/tasks` says of it."""
        question = self.description["task"]
        return {
            "name": self.name,
            "kind": question["kind"],
            "inputs": self.inputs,
            "labels": list(question["labels"]),
            "method": self.description["method"],
            "version": self.version,
            "scores": self.description["scores"],
            "costs": self.description.get("costs"),
            "bytes": self.bytes,
            "trained_parameters": self.description.get("trained_parameters"),
            "has_board": self.has_board,
        }


@dataclass(frozen=True)
class Catalogue:
    """The tasks that are served, and those that are in the bank but could not be opened."""

    tasks: Mapping[str, Listed]
    failed: Mapping[str, str]  # name -> what is wrong with it, without paths

    @cached_property
    def taking(self) -> Mapping[frozenset[str], tuple[str, ...]]:
        """The tasks that take inputs of these names, for each set of them."""
        return {
            names: tuple(task.name for task in self.tasks.values() if task.roles in roles)
            for names, roles in TAKEN_BY.items()
        }

    def named(self, name: str, where: str) -> Listed:
        """Raises `HttpRefusal`: 404 for a name that the bank does not have, 503 for a task that could not be opened.

        503, for the client asked rightly and may come back when the task has been mended.
        """
        if name in self.tasks:
            return self.tasks[name]
        if name in self.failed:
            what = f"the task {name!r} could not be opened: {self.failed[name]}"
            raise HttpRefusal(503, what, where=where, do="other tasks answer; tell who keeps the bank", retry_after=60)
        raise unknown_task(name, self.tasks, where)


def unknown_task(name: str, known: Collection[str], where: str) -> HttpRefusal:
    """404, with the name that comes nearest, which of very many is not sought: a mistake must stay cheap."""
    name = name[:64]
    near = nearest(name, known) if len(known) <= SEARCHED else None
    do = f"did you mean {near!r}?" if near else "GET /v1/tasks lists them"
    return HttpRefusal(404, "no such task", where=where, got=name, do=do)
