"""The differences between two versions of a task, or between two banks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.task_version import TaskEntry
from graftwork.units import metric_title

Pair = list[Any]  # the values in the first and in the second


def of_tasks(one: TaskEntry, other: TaskEntry) -> dict[str, Pair]:
    """Return aspect -> both values, where they differ; empty only when all files are equal."""
    if one.digest == other.digest:
        return {}
    first, second = _aspects(one), _aspects(other)
    found = {name: [first[name], second[name]] for name in first if first[name] != second[name]}
    return found or {"files": [one.digest, other.digest]}


def of_banks(one: BankFolder, other: BankFolder) -> dict[str, Any]:
    """Return the tasks "removed" (only in `one`), "added" (only in `other`) and "changed".

    Also "backbone" and "precision" where they differ, both values as in `of_tasks`.
    """
    here, there = one.state(), other.state()
    both = [name for name in sorted(here.tasks) if name in there.tasks]
    changed = {
        name: of_tasks(one.entry(name, state=here), other.entry(name, state=there))
        for name in both
        if here.tasks[name].digest != there.tasks[name].digest
    }
    grounds: dict[str, Pair] = {"backbone": [_named(state.backbone) for state in (here, there)]}
    grounds["precision"] = [state.precision for state in (here, there)]
    return {
        **{name: pair for name, pair in grounds.items() if pair[0] != pair[1]},
        "removed": sorted(here.tasks.keys() - there.tasks.keys()),
        "added": sorted(there.tasks.keys() - here.tasks.keys()),
        "changed": changed,
    }


def _aspects(entry: TaskEntry) -> dict[str, Any]:
    told, task = entry.description, entry.description["task"]
    return {
        "kind": task["kind"],
        "inputs": told["roles"],
        "labels": task["labels"],
        "backbone": _named(told["backbone"]),
        "precision": told["precision"],
        "method": told["method"],
        "recipe": told.get("recipe"),
        "run": told.get("run"),
        "scores": {metric_title(name, task.get("positive")): score for name, score in told["scores"].items()},
        "trained_parameters": told.get("trained_parameters"),
        "bytes": entry.bytes,
        "delta": told["delta_sha256"],
        "board": entry.has_board,
    }


def _named(backbone: Mapping[str, Any] | None) -> str:
    return f"{backbone['id']}, revision {backbone['revision'][:16]}" if backbone is not None else "none"
