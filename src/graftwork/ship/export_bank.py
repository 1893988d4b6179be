"""Export of many tasks on one backbone: written once, each task's logits compared in joint batches, put in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from graftwork.core.example import Example
from graftwork.core.method import Logits
from graftwork.core.progress import Progress, silent
from graftwork.errors import ConfigError
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.io.new_folder import new_folder
from graftwork.module.exported_folder import EXPORTED_BANK, FORMAT_OF_EXPORT, LONG, PARTS
from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters
from graftwork.ship.export import (
    are_few,
    changes,
    long_example,
    reopened,
    require_few,
    require_logits,
    rows_to_compare,
    same_logits,
    self_test_of,
    splits_to_compare,
)
from graftwork.ship.exporter import ExportsBanks, Quantizes

Tests = Mapping[str, list[Example]]
TASKS_AS = ("fp16", "int8")
LISTED = 5  # unfit tasks at most that a message names


def export_bank(
    modules: Mapping[str, TaskModule],
    folder: str | Path,
    *,
    to: str,
    int8: bool = False,
    tasks_as: str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Export task modules on one backbone, by name, to the new or empty `folder`: the backbone is written once.

    The logits of every task's self-test are compared, all tasks in joint batches. Adapters are written in fp16, or in
    fp32 for a task whose logits fp16 changes by more than the rounding of fp32. With `tasks_as` "int8" their matrices
    are 8-bit integers, except in tasks where that changes too many predictions. With `int8` the backbone's weights
    become 8-bit integers, and the adapters' too unless `tasks_as` is "fp16". The result states for each task the share
    of predictions that 8-bit integers change, on the rows that `export` compares.

    Raises as `export`, and `ConfigError` for a task that can't share a backbone, for tasks on different backbones, and
    for no task at all.
    """
    exporter = exporters.get(to)
    if not isinstance(exporter, ExportsBanks):
        able = [name for name in exporters.names() if isinstance(exporters.get(name), ExportsBanks)]
        raise ConfigError(f"{to} holds no bank", do=f"export a task of it, or export to {', '.join(able)}")
    if tasks_as not in (None, *TASKS_AS):
        raise ConfigError("unknown type for stored adapters", got=repr(tasks_as), expected=" or ".join(TASKS_AS))
    _require_fit(modules, exporter, to)
    with new_folder(Path(folder)) as made:
        bank = _TaskExport({name: module.in_fp32() for name, module in modules.items()}, made, exporter, to)
        progress(0.2, "writing and comparing")
        told = bank.compared()
        if tasks_as == "int8" or (int8 and tasks_as is None):
            progress(0.6, "converting adapters to 8-bit integers")
            told |= bank.with_adapters_in_8_bits(told["in_fp32"])
        if int8:
            progress(0.8, "converting the backbone to 8-bit integers")
            told["int8"] = bank.quantized()
        _seal(made, bank, told)
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {"folder": str(folder), "to": to, "bytes": size} | told


class _TaskExport:
    """The tasks in fp32, the folder that they are written to, and their self-tests."""

    def __init__(self, modules: Mapping[str, TaskModule], folder: Path, exporter: ExportsBanks, to: str):
        self.modules, self.folder, self.exporter, self.to = modules, folder, exporter, to
        tests = {name: one.self_test_examples() for name, one in modules.items()}
        self.tests: tuple[Tests, Tests] = tests, {name: [long_example(own[0])] for name, own in tests.items()}
        self.logits: list[Mapping[str, Logits]] = []  # task -> logits, for each of `tests`

    def compared(self) -> dict[str, Any]:
        """Write the tasks and compare their logits; return what was compared. Raises `IncompatibleModule`."""
        self.exporter.write_bank(self.modules, self.folder, {})
        self.logits = [{name: one.fitted.logits(own[name]) for name, one in self.modules.items()} for own in self.tests]
        found = self._found()
        coarse = [
            name
            for name, one in self.modules.items()
            if not all(same_logits(one, some[name], own[name], self.to) for some, own in self._pairs(found))
        ]
        if coarse:  # the 11 significant bits of fp16 are too few for their adapters
            self.exporter.write_bank(self.modules, self.folder, dict.fromkeys(coarse, "fp32"))
            found = self._found()
        apart = [
            require_logits(one, some[name], own[name], self._of(name))
            for name, one in self.modules.items()
            for some, own in self._pairs(found)
        ]
        texts = sum(len(own) for tests in self.tests for own in tests.values())
        return {"tasks": len(self.modules), "in_fp32": coarse, "texts": texts, "largest_difference": max(apart)}

    def with_adapters_in_8_bits(self, in_fp32: Sequence[str]) -> dict[str, Any]:
        """Store adapters as 8-bit integers in tasks where few predictions change; return changes and exceptions."""
        small = dict.fromkeys(self.modules, "int8")
        self.exporter.write_bank(self.modules, self.folder, small)
        told = self._changes()
        kept = [name for name, one in told.items() if not are_few(one)]
        if kept:
            exact = {name: "fp32" if name in in_fp32 else "fp16" for name in kept}
            self.exporter.write_bank(self.modules, self.folder, small | exact)
        self.logits = self._found()
        return {"adapters_int8": told, "not_in_int8": kept, "in_fp32": [name for name in kept if name in in_fp32]}

    def quantized(self) -> dict[str, Any]:
        """Convert the backbone to 8-bit integers; return task -> `changes`. Raises `IncompatibleModule`."""
        if not isinstance(self.exporter, Quantizes):
            raise ConfigError(f"{self.to} is not written in 8-bit integers", do="omit --int8")
        self.exporter.quantize(self.folder)
        told = self._changes()
        worst = max(told, key=lambda name: told[name]["changed_predictions"])
        require_few(told[worst], str(self.modules[worst].folder), task=worst)
        self.logits = self._found(apart=True)  # one task per batch: int8 activations are scaled by a batch's largest
        return told

    def sealed(self) -> dict[str, Any]:
        """Return each task's self-test; under `LONG` it contains the self-test of an overlong text."""
        (own, long), (of_own, of_long) = self.tests, self.logits
        return {
            name: self_test_of(one, own[name], of_own[name].tolist())
            | {LONG: self_test_of(one, long[name], of_long[name].tolist())}
            for name, one in self.modules.items()
        }

    def _found(self, apart: bool = False) -> list[Mapping[str, Logits]]:
        return [self.exporter.bank_logits(self.folder, own, apart) for own in self.tests]

    def _pairs(self, found: Sequence[Mapping[str, Logits]]) -> list[tuple[Mapping[str, Logits], Mapping[str, Logits]]]:
        return list(zip(found, self.logits, strict=True))

    @cached_property
    def _rows(self) -> dict[str, tuple[list[Example], Logits]]:
        """The rows that 8-bit integers are judged by, and their logits in fp32."""
        rows = {
            name: rows_to_compare(module, splits_to_compare(reopened(module)))[0]
            for name, module in self.modules.items()
        }
        return {name: (own, self.modules[name].fitted.logits(own)) for name, own in rows.items()}

    def _changes(self) -> dict[str, Any]:
        found = self.exporter.bank_logits(self.folder, {name: own for name, (own, _) in self._rows.items()})
        return {
            name: changes(self.modules[name], own, found[name], logits, self._of(name))
            for name, (own, logits) in self._rows.items()
        }

    def _of(self, task: str) -> str:
        return f"{self.to}, of task {task!r},"


def _require_fit(modules: Mapping[str, TaskModule], exporter: ExportsBanks, to: str) -> None:
    if not modules:
        raise ConfigError("the bank has no task", do="add one: graft bank add BANK MODULE")
    unfit = {name: why for name, module in modules.items() if (why := exporter.unfit_in_bank(module))}
    if unfit:
        listed = [f"{name}: {why}" for name, why in list(unfit.items())[:LISTED]]
        more = [f"and {len(unfit) - LISTED} more"] if len(unfit) > LISTED else []
        raise ConfigError(
            f"tasks of this bank can't share a graph in {to}",
            got="; ".join([*listed, *more]),
            do="name the others with --task, and export these one by one: graft export BANK DIR --task TASK",
        )
    revisions = {module.description["backbone"]["revision"] for module in modules.values()}
    if len(revisions) > 1:
        raise ConfigError(
            "these tasks are on different backbones",
            got=", ".join(sorted(one[:16] for one in revisions)),
            do="export the tasks of one backbone at a time: --task",
        )


def _seal(folder: Path, bank: _TaskExport, told: Mapping[str, Any]) -> None:
    """Write the self-tests into the tasks' files, and the hashes of all files into graftwork_bank.json."""
    own, long = bank.tests
    graph, parts = bank.exporter.bank_parts(folder, {name: [*some, *long[name]] for name, some in own.items()})
    for name, test in bank.sealed().items():
        path = folder / "tasks" / f"{name}.json"
        write_json(path, read_json(path) | {"selftest": test | {PARTS: parts[name]}})
    described = read_json(folder / EXPORTED_BANK)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != EXPORTED_BANK)
    files = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
    told = {"compared": dict(told), "graph": graph, "files": files}
    write_json(
        folder / EXPORTED_BANK, described | {"export": {"format": FORMAT_OF_EXPORT, **described["export"]} | told}
    )
