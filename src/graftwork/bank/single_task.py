"""A task module, or an export of one, served by itself: like a bank with one task that never changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graftwork.bank.bank_folder import unknown_task
from graftwork.bank.task_version import BankChanges, TaskEntry, digest_of
from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import WritesAloud
from graftwork.core.writing import Tell
from graftwork.errors import ConfigError
from graftwork.module.input_format import GivenInputs
from graftwork.module.predict_many import answer_windows
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds


class SingleTask:
    """One open module under the name of its task. Implements `ServedTasks`."""

    def __init__(self, module: TaskModule):
        self.path, described = module.folder, module.description
        self.card = None if described["backbone"] is None else BackboneCard(**described["backbone"])
        self.precision = str(described["precision"])
        self._module, self._name = module, module.task.name
        size = sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())
        shown = {key: value for key, value in described.items() if key != "facts"}
        self._entry = TaskEntry(self._name, 1, digest_of(self.path), size, "", self.path, shown, has_board=False)

    @classmethod
    def open(cls, path: str | Path, *, device: str = "auto") -> SingleTask:
        """Open the folder of a module, of a run or of an exported task. Raises as `TaskModule.load`."""
        return cls(TaskModule.load(path, device=device))

    @property
    def tasks(self) -> Mapping[str, TaskEntry]:
        """The task, by its name."""
        return MappingProxyType({self._name: self._entry})

    @property
    def by_version(self) -> Mapping[str, TaskEntry]:
        """Empty: a module has no versions."""
        return {}

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Tell | None = None) -> list[dict[str, Any]]:
        """Predict rows, each the task's name and an example; `tell` is called with texts while they are written.

        Raises `UnknownName` for another task.
        """
        self._require_known(name for name, _ in rows)
        task, fitted, examples = self._module.task, self._module.fitted, [example for _, example in rows]
        if tell is not None and isinstance(fitted, WritesAloud):
            return kinds.get(task.kind).decode(fitted.written_aloud(examples, tell), task, examples)
        parts = answer_windows([self._module], examples)
        return [answer for part in parts for answer in part.answers[0]]

    def cut(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[bool]:
        """Return, per row, whether it is too long and therefore truncated."""
        self._require_known(name for name, _ in rows)
        return [self._module.cut([given]) > 0 for _, given in rows]

    def refresh(self) -> BankChanges:
        """Return no changes: what is open stays as it is."""
        return BankChanges()

    def load_all(self) -> Mapping[str, str]:
        """Return no failure: the task was opened and tested already."""
        return {}

    def open_backbone(self) -> Backbone:
        """Return the module's network. Raises `ConfigError` where there is none to look into."""
        if self._module.backbone is None:
            raise ConfigError(
                "this task has no network that can be looked into",
                where=str(self.path),
                do="serve a task module with a network: a baseline and an export have none",
            )
        return self._module.backbone

    def module(self, name: str) -> TaskModule:
        """Return the module. Raises `UnknownName` for another task's name."""
        self._require_known([name])
        return self._module

    def _require_known(self, names: Any) -> None:
        for name in names:
            if name != self._name:
                raise unknown_task(name, self.tasks, self.path)
