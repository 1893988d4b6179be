"""The tasks of a stream and their shared training settings."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import ConfiguredMethod
from graftwork.core.in_memory import beside
from graftwork.core.kind_settings import kind_settings
from graftwork.core.run import Recipe
from graftwork.core.task import Task, read_task_file
from graftwork.documents import document
from graftwork.errors import ConfigError, GraftworkError
from graftwork.io.files import digest
from graftwork.machine.environment import numerics
from graftwork.pretrained.open_backbone import lasting_name
from graftwork.run.session import OpenBackbone, Session, open_session
from graftwork.run.settings import GivenSettings, RunSettings, over
from graftwork.run.train import require_fit

NAMED_FLAG = re.compile(r"--([a-z][a-z-]*)")


class TaskFailed(GraftworkError):
    """Error of one task of a stream, which does not concern the others."""


@dataclass(frozen=True)
class StreamTask:
    """A task and the training settings in its file."""

    task: Task
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, given: Any, runs: str) -> StreamTask:
        """Build from a task, or from data as `train` takes them with this folder `runs`. Raises `GraftworkError`."""
        is_file = isinstance(given, str | Path) and str(given).endswith(".toml")
        return cls(Task.from_data(given, folder=beside(runs)), read_task_file(Path(given))[1] if is_file else {})


@dataclass(frozen=True)
class How:
    """The settings that every task is trained with, as in `train`."""

    method: ConfiguredMethod
    given: GivenSettings  # for all tasks; override the settings in their files
    setup: RunSettings
    seed: int
    learning_rate: float | None

    @property
    def backbone(self) -> str | None:
        """The backbone given for all tasks, overriding those in their files; None if none was given."""
        return self.given.get("backbone")

    def session(self, asked: StreamTask, shared: OpenBackbone) -> Session:
        """Open a session for the task on the shared backbone. Raises `TaskFailed` where the task can't be learnt."""
        with of_this_task():
            named, backbone = asked.settings.get("backbone", self.setup.backbone), self.setup.backbone
            differs = lasting_name(named) != lasting_name(backbone)
            if shared.backbone is not None and differs and self.backbone is None:
                raise ConfigError(
                    "this task is for another backbone than the stream's",
                    got=named,
                    expected=backbone,
                    do="remove the line from its file, or name one backbone for all tasks: --backbone",
                )
            session = open_session(asked.task, [self.method], self.setup, shared)
            require_fit(session, self.method)
            return session

    def recipe(self, asked: StreamTask) -> Recipe:
        """Return the recipe of a task."""
        return replace(RunSettings.of(over(asked.settings, self.given)).recipe, learning_rate=self.learning_rate)

    def question(self, asked: StreamTask, session: Session) -> str:
        """Return a hash of the task's data and training; independent of the tasks before it and of the thread count."""
        spec = session.spec(self.method, self.recipe(asked), self.seed)
        return digest([spec.question, spec.data, spec.method, spec.recipe, spec.seed])

    def identity(self, shared: OpenBackbone) -> dict[str, Any]:
        """Return, as JSON, the settings that two commands of one stream must share."""
        card = shared.backbone.card if shared.backbone is not None else None
        computed_in = numerics(self.setup.precision, self.setup.device, self.method.method.uses_backbone)
        return {
            "method": dict(self.method.config),
            "seed": self.seed,
            "epochs": self.setup.epochs,
            "batch_size": None if self.setup.batch_size == Recipe.batch_size else self.setup.batch_size,
            "learning_rate": self.learning_rate,
            "precision": computed_in["precision"],
            "backbone": None if card is None else {"id": card.id, "revision": card.revision},
        }


@contextlib.contextmanager
def of_this_task(but: tuple[type[GraftworkError], ...] = ()) -> Iterator[None]:
    """Turn a `GraftworkError` in the block, unless of a type in `but`, into a `TaskFailed`.

    Where its advice names a flag that describes a task, which a stream lacks, point to the task file.
    """
    try:
        yield
    except but:
        raise
    except GraftworkError as error:
        page = document("reference/data-files.md#task-files")
        do = f"{error.do} (in a task file: {page})" if _names_a_task_flag(error.do) else error.do
        parts = {"where": error.where, "got": error.got, "expected": error.expected, "do": do}
        raise TaskFailed(error.what, **parts) from error


def _names_a_task_flag(words: str) -> bool:
    listed = {item.name for item in fields(Task)} | kind_settings().keys()
    return any(name.replace("-", "_") in listed for name in NAMED_FLAG.findall(words))
