"""A module's training data: recorded in its description, reopened if still in place, and searched for in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graftwork.core.example import Example
from graftwork.core.kind_settings import settings_of
from graftwork.core.task import FILES, SPLITS, Dataset, Task
from graftwork.data.load import load
from graftwork.data.splits.draws import drawn_again
from graftwork.errors import ConfigError, GraftworkError
from graftwork.pretrained.download_policy import kept_only

if TYPE_CHECKING:
    from graftwork.module.task_module import TaskModule

READ_BY = ("text", "text_a", "text_b", "image", "sound", "label", "drop_leaks", "rejects", "split_seed")
LEARNT = ("train", "validation")  # splits used for training and for model selection
AT_ONCE = 8192  # minimum rows per comparison, since each comparison reads the training rows again


def record(dataset: Dataset) -> dict[str, Any]:
    """Return digest, row counts and reader settings as JSON. Paths are as the user gave them."""
    task = dataset.task
    listed = {*READ_BY, *(name for name, setting in settings_of(task.kind).items() if not setting.in_question)}
    plain = Task(task.name, task.data, kind=task.kind).as_record()
    told = {name: value for name, value in task.as_record().items() if name in listed and value != plain[name]}
    files = {name: str(path) for name in FILES if (path := getattr(task, name)) is not None}
    rows = {name: len(dataset.splits[name].examples) for name in SPLITS}
    draw = {"draw": dict(dataset.report["draw"])} if "draw" in dataset.report else {}
    return {"digest": dataset.digest, "rows": rows, "files": files, "read_by": told} | draw


def reopen_data(recorded: Mapping[str, Any] | None, task: Task) -> tuple[Dataset | None, str]:
    """Reopen the data recorded with a module of `task`; else return None and the reason."""
    if recorded is None:
        return None, "the module does not say what it was trained on: it was imported, or is older than that"
    files = {name: Path(path) for name, path in recorded["files"].items()}
    asked = Task.from_json(task.as_dict() | recorded["read_by"] | files)
    try:
        with kept_only():
            found = drawn_again(load(asked, checked=False), recorded.get("draw"))
    except GraftworkError as error:
        return None, f"what it was trained on can't be read: {error.what}: {error.where}"
    if found.digest != recorded["digest"]:
        return None, f"{files['data']} has changed since it was trained on"
    return found, ""


def own_data(module: TaskModule) -> Dataset:
    """Reopen the data that `module` was trained on. Raises `ConfigError` where it is not found unchanged."""
    recorded = module.description.get("data")
    found, reason = reopen_data(recorded, module.task)
    if found is None:
        do = "" if recorded is None else "name the training file where it is now: --data FILE"
        raise ConfigError(
            "the data that the module was trained on is needed", where=str(module.folder), got=reason, do=do
        )
    return found


def with_data_at(module: TaskModule, moved_to: str | Path | None) -> TaskModule:
    """Return `module` with another place of its training file in its description; itself for None."""
    recorded = module.description.get("data")
    if recorded is None or moved_to is None:
        return module
    files = recorded["files"] | {"data": str(moved_to)}
    return replace(module, description={**module.description, "data": recorded | {"files": files}})


class Overlap:
    """Counter of rows of a file that are exact or near duplicates of a module's training or validation rows.

    Memory grows with the training and validation rows, not with the file.
    """

    def __init__(self, module: TaskModule):
        """Open the data recorded with the module, if still in place."""
        data, self.unreachable = reopen_data(module.description.get("data"), module.task)
        splits = {} if data is None else {name: data.splits[name].examples for name in LEARNT}
        self._among = {name: [example.inputs for example in examples] for name, examples in splits.items()}
        self._waiting: list[Mapping[str, Any]] = []
        self._counts = {name: {"exact": 0, "near": 0} for name in self._among}
        self._either = 0

    def count(self, examples: Sequence[Example]) -> None:
        """Count some rows of the file."""
        if self._among:
            self._waiting += [example.inputs for example in examples]
        if len(self._waiting) >= max(AT_ONCE, *map(len, self._among.values()), 0):
            self._look()

    def as_json(self) -> dict[str, Any]:
        """Return the counts per split and in total as JSON, or the reason that they are unknown."""
        self._look()
        if not self._among:
            return {"rows": None, "unreachable": self.unreachable}
        return {"rows": self._either, "unreachable": None} | self._counts

    def _look(self) -> None:
        if not self._waiting:
            return
        from graftwork.data.checks.repeats import standing

        found = {name: standing(self._waiting, among) for name, among in self._among.items()}
        for name, (exact, near) in found.items():
            self._counts[name]["exact"] += int(exact.sum())
            self._counts[name]["near"] += int(near.sum())
        self._either += int(np.any([exact | near for exact, near in found.values()], axis=0).sum())
        self._waiting = []
