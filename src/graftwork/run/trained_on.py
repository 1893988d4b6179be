"""What a module was trained on: recorded in its description, and opened again where it still lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from graftwork.core.asked_for import kept_only
from graftwork.core.task import SPLITS, Dataset, Task
from graftwork.data.draws import drawn_again
from graftwork.data.load import load
from graftwork.errors import GraftworkError

FILES = ("data", "validation", "test")
READ_BY = (
    "text", "text_a", "text_b", "image", "sound", "choices", "count_from", "label", "stray_tags", "realign",
    "drop_leaks", "rejects", "split_seed",
)  # fmt: skip


def record(dataset: Dataset) -> dict[str, Any]:
    """Digest, rows, and by what the files are read, as JSON. Paths are as the user named them."""
    task = dataset.task
    plain = {item.name: item.default for item in fields(Task)}
    told = {name: getattr(task, name) for name in READ_BY if getattr(task, name) != plain[name]}
    files = {name: str(path) for name in FILES if (path := getattr(task, name)) is not None}
    rows = {name: len(dataset.splits[name].examples) for name in SPLITS}
    draw = {"draw": dict(dataset.report["draw"])} if "draw" in dataset.report else {}
    return {"digest": dataset.digest, "rows": rows, "files": files, "read_by": told} | draw


def reopened(recorded: Mapping[str, Any] | None, task: Task) -> tuple[Dataset | None, str]:
    """The data that were recorded with a module of `task`; else None, and why in words."""
    if recorded is None:
        return None, "the module does not say what it was trained on: it was imported, or is older than that"
    files = {name: Path(path) for name, path in recorded["files"].items()}
    told = {name: tuple(value) if isinstance(value, list) else value for name, value in recorded["read_by"].items()}
    settings: dict[str, Any] = {**files, **told}
    known: dict[str, Any] = {"labels": task.labels, "metrics": task.metrics, "positive": task.positive}
    asked = Task(name=task.name, kind=task.kind, **known, **settings)
    try:
        with kept_only():
            found = drawn_again(load(asked, checked=False), recorded.get("draw"))
    except GraftworkError as error:
        return None, f"what it was trained on can't be read: {error.what}: {error.where}"
    if found.digest != recorded["digest"]:
        return None, f"{files['data']} has changed since it was trained on"
    return found, ""
