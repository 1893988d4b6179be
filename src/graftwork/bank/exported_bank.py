"""An exported bank, which predicts and serves like a bank, through onnxruntime. Imports no torch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from graftwork.bank.bank_folder import unknown_task
from graftwork.bank.task_version import BankChanges, TaskEntry
from graftwork.core.backbone import BackboneCard
from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.core.task import Task
from graftwork.core.writing import Tell
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule
from graftwork.io.files import read_json
from graftwork.io.json_limits import MODULE
from graftwork.module.exported_folder import EXPORTED_BANK, LONG, PARTS, read_export, with_cause
from graftwork.module.input_format import GivenInputs
from graftwork.module.inputs import example_of_given
from graftwork.module.predict_many import answers_of, windows_by_task
from graftwork.module.task_module import TaskModule, stored_examples
from graftwork.ship.onnx_parts import changed_task
from graftwork.ship.onnx_tasks import TASKS, GraphOfTasks, open_tasks

Answer = dict[str, Any]


@dataclass
class TaskOfGraph:
    """One task of the graph. Implements `Fitted` and `CountsCut`."""

    graph: GraphOfTasks
    name: str
    facts: Mapping[str, Any]
    trained_parameters: int

    def logits(self, examples: Sequence[Example]) -> Logits:
        """Return the logits (N, C), or (W, C) of words or choices."""
        return self.graph.logits({self.name: examples})[self.name]

    def cut(self, examples: Sequence[Example]) -> int:
        """Return how many of these examples are truncated."""
        return self.graph.reader.encode(examples).cut if examples else 0

    def delta(self) -> NoReturn:
        """Raise `ConfigError`."""
        raise ConfigError("a task of an exported bank has no delta", do="use the bank that it was exported from")

    def flops(self, examples: Sequence[Example]) -> NoReturn:
        """Raise `ConfigError`: onnxruntime counts no operations."""
        raise ConfigError("the FLOPs of an exported task are not known", do="see those of its task module")


class ExportedBank:
    """The tasks of an exported folder, each self-tested on first use. Thread-safe. Implements `ServedTasks`."""

    def __init__(self, path: Path, description: Mapping[str, Any]):
        self.path = path
        self.card = BackboneCard(**description["backbone"])
        self.precision = str(description.get("precision", "fp32"))
        self._export = description["export"]
        self.failed: Mapping[str, str] = {}
        self._graph = open_tasks(path, description)
        self._lock = threading.RLock()
        self._entries: dict[str, TaskEntry] = {}
        self._tests: dict[str, Mapping[str, Any]] = {}  # self-tests that did not run yet
        self._long_tested: set[tuple[str, ...]] = set()  # roles for which the self-test of an overlong text has run
        self._modules: dict[str, TaskModule] = {}
        for name in description["export"]["tasks"]:
            told = read_json(path / TASKS / f"{name}.json", MODULE)
            self._tests[name] = told.pop("selftest")
            fitted = TaskOfGraph(self._graph, name, told["facts"], int(told["trained_parameters"]))
            task = Task.from_question(name, told["task"])
            self._modules[name] = TaskModule(path, task, fitted, told, None)
            files = [path / TASKS / f"{name}{suffix}" for suffix in (".json", ".safetensors")]
            size = sum(file.stat().st_size for file in files)
            digest = description["export"]["files"][f"{TASKS}/{name}.safetensors"]
            shown = {key: value for key, value in told.items() if key != "facts"}
            self._entries[name] = TaskEntry(name, 1, digest, size, "", path / TASKS, shown, has_board=False)

    @classmethod
    def open(cls, path: str | Path) -> ExportedBank:
        """Open the folder. Raises `StorageError` where there is none, `IncompatibleModule` for a changed file."""
        return cls(Path(path), read_export(Path(path), EXPORTED_BANK))

    @property
    def tasks(self) -> Mapping[str, TaskEntry]:
        """The tasks by name."""
        return MappingProxyType(self._entries)

    @property
    def by_version(self) -> Mapping[str, TaskEntry]:
        """Empty: an exported folder keeps one version of each task."""
        return {}

    def module(self, name: str) -> TaskModule:
        """Return a task on its own, self-tested. Raises `UnknownName`, `IncompatibleModule`."""
        return self._tested([name])[name]

    def _tested(self, names: Iterable[str]) -> Mapping[str, TaskModule]:
        """Return these tasks; self-tests that did not run yet are run, in joint batches."""
        asked = dict.fromkeys(names)
        if unknown := [name for name in asked if name not in self._modules]:
            raise unknown_task(unknown[0], self._entries, self.path)
        if any(name in self._tests for name in asked):
            with self._lock:
                new = [name for name in asked if name in self._tests]
                found = self._joint_logits(new)
                for name in new:
                    self._require_tested(name, found.get(name))
                    del self._tests[name]
        return {name: self._modules[name] for name in asked}

    def _joint_logits(self, names: Sequence[str]) -> Mapping[str, Logits]:
        """Return the logits of these tasks' self-tests, or none if each task must be tested by itself."""
        if len(names) < 2 or self.precision == "int8":  # int8 logits depend on the other rows of a batch
            return {}
        try:
            return self._graph.logits({name: stored_examples(self._tests[name], self.path) for name in names})
        except GraftworkError:  # of one of them, which its own test names
            return {}

    def _require_tested(self, name: str, found: Logits | None) -> None:
        """Test a task, and the graph on a text that is too long if this is the first task with such inputs."""
        stored, module = self._tests[name], self._modules[name]
        long = stored.get(LONG) if module.roles not in self._long_tested else None
        try:
            module.require_tested(stored, found)
            if long is not None:
                module.require_tested(long)
                self._long_tested.add(module.roles)
        except IncompatibleModule as error:
            if PARTS not in stored:
                raise
            examples = [one for test in (stored, stored.get(LONG)) if test for one in stored_examples(test, self.path)]
            raise with_cause(error, changed_task(self.path, self._export, name, stored[PARTS], examples)) from None

    def predict(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[Answer]:
        """Return the prediction of each row (a task's name and inputs), in joint batches. Raises as `Bank.predict`."""
        return self.answers(self._examples(rows))

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Tell | None = None) -> list[Answer]:
        """Predict as `predict`, for rows that are examples already. `tell` is not called: no task here writes texts."""
        modules = self._tested(name for name, _ in rows)
        found: list[Answer] = []
        for window, asked in windows_by_task(rows):
            wanted = {name: [window[place][1] for place in places] for name, places in asked.items()}
            answered: dict[int, Answer] = {}
            for name, logits in self._graph.logits(wanted).items():
                decoded = answers_of(modules[name], logits, wanted[name])
                answered |= zip(asked[name], decoded, strict=True)
            found += [answered[place] for place in range(len(window))]
        return found

    def cut(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[bool]:
        """Return, per row, whether it is truncated."""
        return [self._graph.reader.encode([example]).cut > 0 for _, example in self._examples(rows)]

    def refresh(self) -> BankChanges:
        """Return no changes: an exported folder stays as it is."""
        return BankChanges()

    def load_all(self) -> Mapping[str, str]:
        """Run the self-tests that did not run yet; return task -> message of those that failed."""
        with self._lock:
            found = self._joint_logits(list(self._tests))
            for name in list(self._tests):
                try:
                    self._require_tested(name, found.get(name))
                    del self._tests[name]
                except GraftworkError as error:
                    self.failed = {**self.failed, name: error.message}
        return self.failed

    def open_backbone(self) -> NoReturn:
        """Raise `ConfigError`: an export holds only a graph."""
        raise ConfigError(
            "an exported bank has no network that can be looked into",
            where=str(self.path),
            do="open the bank that it was exported from",
        )

    def _examples(self, rows: Sequence[tuple[str, GivenInputs]]) -> list[tuple[str, Example]]:
        modules = self._tested(name for name, _ in rows)
        return [
            (name, example_of_given(modules[name].roles, number, given)) for number, (name, given) in enumerate(rows, 1)
        ]
