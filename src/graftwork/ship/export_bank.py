"""Export of many tasks on one backbone: written once, each task's logits compared in joint batches, put in place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.core.progress import Progress, silent
from graftwork.errors import ConfigError
from graftwork.io.files import file_digest, read_json, write_json
from graftwork.io.new_folder import new_folder
from graftwork.module.exported_folder import EXPORTED_BANK, FORMAT_OF_EXPORT, PARTS
from graftwork.module.task_module import TaskModule
from graftwork.registry import exporters
from graftwork.ship.export import (
    changes,
    compared,
    long_example,
    require_few,
    require_logits,
    same_logits,
    self_test_of,
)
from graftwork.ship.exporter import ExportsBanks, Quantizes

LISTED = 5  # unfit tasks at most that a message names


def export_bank(
    modules: Mapping[str, TaskModule],
    folder: str | Path,
    *,
    to: str,
    int8: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Export task modules on one backbone, by name, to the new or empty `folder`: the backbone is written once.

    The logits of every task's self-test are compared, all tasks in joint batches. Adapters are written in fp16, and in
    fp32 where that would change the logits by more than rounding in fp32 may. With `int8` the backbone's weights
    become 8-bit integers, and the result states for each task the share of predictions that change, on the rows that
    `export` compares. Raises as `export`, and `ConfigError` for a task that can't share a backbone, for tasks on
    different ones, and for none.
    """
    exporter = exporters.get(to)
    if not isinstance(exporter, ExportsBanks):
        able = [name for name in exporters.names() if isinstance(exporters.get(name), ExportsBanks)]
        raise ConfigError(f"{to} holds no bank", do=f"export a task of it, or export to {', '.join(able)}")
    _require_fit(modules, exporter, to)
    with new_folder(Path(folder)) as made:
        exact = {name: module.in_fp32() for name, module in modules.items()}
        progress(0.2, "writing")
        exporter.write_bank(exact, made)
        progress(0.5, "comparing")
        tests = {name: one.self_test_examples() for name, one in exact.items()}
        tests = {name: [*own, long_example(own[0])] for name, own in tests.items()}
        logits = {name: one.fitted.logits(tests[name]) for name, one in exact.items()}
        found = exporter.bank_logits(made, tests)
        coarse = [name for name, one in exact.items() if not same_logits(one, found[name], logits[name], to)]
        if coarse:  # 11 bits are too few for their adapters
            exporter.write_bank(exact, made, in_fp32=coarse)
            found = exporter.bank_logits(made, tests)
        apart = [require_logits(one, found[name], logits[name], _of(to, name)) for name, one in exact.items()]
        told = {
            "tasks": len(modules),
            "in_fp32": coarse,
            "texts": sum(map(len, tests.values())),
            "largest_difference": max(apart),
        }
        if int8:
            progress(0.6, "converting to 8-bit integers")
            told["int8"] = _quantized(exact, made, exporter, to)
            logits = {name: exporter.bank_logits(made, {name: own})[name] for name, own in tests.items()}
        sealed = {name: self_test_of(one, tests[name], logits[name].tolist()) for name, one in exact.items()}
        graph, parts = exporter.bank_parts(made, tests)
        _seal(made, {name: test | {PARTS: parts[name]} for name, test in sealed.items()}, told, graph)
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {"folder": str(folder), "to": to, "bytes": size} | told


def _of(to: str, task: str) -> str:
    return f"{to}, of task {task!r},"


def _quantized(modules: Mapping[str, TaskModule], folder: Path, exporter: ExportsBanks, to: str) -> dict[str, Any]:
    """Convert the graph; return task -> `changes`. Raises `IncompatibleModule` for the task that changes most."""
    if not isinstance(exporter, Quantizes):
        raise ConfigError(f"{to} is not written in 8-bit integers", do="omit --int8")
    exporter.quantize(folder)
    rows = {name: compared(module)[0] for name, module in modules.items()}
    found = exporter.bank_logits(folder, rows)
    told = {
        name: changes(module, found[name], module.fitted.logits(rows[name]), _of(to, name))
        for name, module in modules.items()
    }
    worst = max(told, key=lambda name: told[name]["changed_predictions"])
    require_few(told[worst], str(modules[worst].folder), task=worst)
    return told


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


def _seal(folder: Path, tests: Mapping[str, Any], told: Mapping[str, Any], graph: Any) -> None:
    """Write the self-tests into the tasks' files, and the hashes of all files into graftwork_bank.json."""
    for name, test in tests.items():
        path = folder / "tasks" / f"{name}.json"
        write_json(path, read_json(path) | {"selftest": test})
    described = read_json(folder / EXPORTED_BANK)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != EXPORTED_BANK)
    files = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
    told = {"compared": dict(told), "graph": graph, "files": files}
    write_json(
        folder / EXPORTED_BANK, described | {"export": {"format": FORMAT_OF_EXPORT, **described["export"]} | told}
    )
