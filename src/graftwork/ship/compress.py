"""Compression of a trained task module by a ladder: a sequence of rungs, each of which is one compression.

A rung is applied to the result of the rungs kept before it, and is kept if its loss of score is shown to be small.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from graftwork.core.arguments import told_arguments
from graftwork.core.example import Example
from graftwork.core.part_settings import chosen_settings, split_words
from graftwork.core.progress import Progress, silent
from graftwork.core.task import Dataset, positive_of
from graftwork.data.readers.rejects import Bad
from graftwork.errors import ConfigError, StorageError, UnknownName
from graftwork.io.files import require_writable, storage_errors, sync_tree
from graftwork.module.calibration import CALIBRATION, at_temperature, calibration_of, temperature_of
from graftwork.module.confidence import held_out_summary
from graftwork.module.exported_folder import is_exported
from graftwork.module.file_rows import rows_for
from graftwork.module.task_module import TaskModule, add_to_description
from graftwork.module.trained_on import own_data, with_data_at
from graftwork.registry import compressions, kinds
from graftwork.ship.compressed_costs import compressed_costs
from graftwork.ship.compression import Compression, CompressionData
from graftwork.ship.rung_measure import evidence, latency_ratio, loss_of, rows_needed, scores_on
from graftwork.ship.rung_search import RungSearch
from graftwork.ship.runtime_rung import runtime_rungs, runtimes
from graftwork.ship.unwrapped import unwrapped

AIMS = ("speed", "bytes", "joules")
Plan = Callable[[Sequence[tuple[str, float | None]]], None]  # takes rungs and their training seconds


def untold(rungs: Sequence[tuple[str, float | None]]) -> None:
    """Do nothing: the default `plan` of `compress`."""


@told_arguments
def compress(
    module: str | Path,
    folder: str | Path,
    *,
    allow: float = 0.5,
    aim: str = "speed",
    rungs: str | Sequence[str] = (),
    runtime: str | None = None,
    data: str | Path | None = None,
    texts: str | Path | None = None,
    seed: int = 0,
    plan: Plan = untold,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Make the task module `module` (or a run's) smaller or faster, and write it to the new `folder`.

    Each rung of the ladder is one compression, applied to the result of the rungs kept before it. An exact rung is kept
    unless it makes the module slower or larger. Any other is kept if it improves the aim ("speed", "bytes" or "joules")
    and its loss on validation is shown to be at most `allow` points of the headline metric: by the upper end of the
    one-sided 95 % interval, from a paired bootstrap, of the difference from the original. The test split is used once,
    for the module that is written. `rungs` names compressions, as "merge" or "vocabulary:common=8000"; the default is
    all of the ladder, exact ones first. If a compression stands there with several settings, the first that are kept
    are the only ones, unless the last rung loses too much on top of them: then the next ones are tried too. With a
    `runtime` ("onnx"), the last rungs export the module in fp32 and in 8-bit integers; if one is kept, the new folder
    is an exported one, which opens like a module. The default ladder then omits compressions that only store weights in
    fewer bits. `plan` is called before the first rung, with the rungs and their estimated seconds of training. `data`
    is the new place of the training file, if it was moved; `texts` a file of further inputs without labels.

    Returns JSON: the rungs tried, the price of the search, scores on test, and "module", the folder, or None where no
    rung was kept and nothing was written. Raises `ConfigError` for settings and modules that do not fit, `DataError`
    for a bad row, `StorageError` for a folder that exists or can't be written.
    """
    target, chosen = Path(folder), ladder(rungs, runtime)
    _require_settings(target, allow, aim)
    opened = with_data_at(_opened(module), data)
    dataset = own_data(opened)
    known = CompressionData(dataset.train, dataset.validation, tuple(_texts_of(opened, texts)))
    require_writable(target.absolute().parent)
    with workplace(target) as work:
        search = RungSearch(opened, known, allow / 100, aim, seed, work)
        plan([(label, search.foreseen(compression)) for label, compression in chosen])
        (search.climb_all if rungs else search.climb_alternatives)(chosen, progress)
        report = _report(search, allow)
        if report["kept"]:
            made = search.stage.module
            report |= {"test": score_on_test(opened, made, dataset)}
            describe(opened, made, dataset, report, _costs(search, report["price"]["wall_seconds"]))
            with storage_errors(target):
                made.folder.rename(target)
    written = str(target) if report["kept"] else None
    return {"module": written, "of": str(module), "runtime": runtime or "torch", **report}


def ladder(rungs: str | Sequence[str], runtime: str | None = None) -> list[tuple[str, Compression]]:
    """Return label and compression of each named rung, as "merge" or "vocabulary:common=8000"; without names, of all.

    All rungs are ordered by `ORDER`: exact ones first, then those that train, then those that drop tokens or store
    weights in fewer bits. The rungs of the runtime come last. Raises `UnknownName` or `ConfigError`.
    """
    last = runtime_rungs(runtime)
    asked = split_words(rungs)
    for words in asked:
        if (name := words.partition(" ")[0]) in runtimes():
            raise ConfigError(f"{words!r} is the last rung of a runtime", do=f"omit it, and add --runtime {name}")
    named = [(words, *chosen_settings(words, compressions)) for words in asked]
    for words, name, _ in named:
        if runtime and compressions.get(name).STORES:
            raise ConfigError(
                f"{words} stores weights for torch alone, and the runtime is {runtime}",
                do=f"omit it: {' and '.join(label for label, _ in last)} come last anyway",
            )
    if not named:
        makers = sorted(((compressions.get(name), name) for name in compressions.names()), key=lambda one: one[0].ORDER)
        named = [
            (":".join([name, *(f"{key}={value}" for key, value in entry.items())]), name, dict(entry))
            for make, name in makers
            if not (runtime and make.STORES)
            for entry in make.LADDER
        ]
    made = [(label, cast(Any, compressions.get(name))(**settings)) for label, name, settings in named]
    return [*made, *last]


def _opened(module: str | Path) -> TaskModule:
    """Open a module, on the CPU. Raises `ConfigError` for one that has no network to compress."""
    opened = unwrapped(TaskModule.load(module, device="cpu"))
    if is_exported(opened.folder):
        do = "compress the module that it was made of"
        raise ConfigError("this folder was exported already", where=str(opened.folder), do=do)
    if opened.backbone is None:
        method = opened.description["method"]["name"]
        raise ConfigError(
            f"{method} uses no network: there is nothing to compress",
            where=str(opened.folder),
            expected="a module on a backbone",
        )
    return opened


def _require_settings(target: Path, allow: float, aim: str) -> None:
    if not (math.isfinite(allow) and allow >= 0):
        raise ConfigError("allow is a number of points, 0 or more", got=f"{allow:g}")
    if aim not in AIMS:
        raise UnknownName("aim", aim, AIMS)
    if target.exists() or target.is_symlink():
        raise StorageError("this folder exists already", where=str(target), do="name a new one")


def _texts_of(module: TaskModule, texts: str | Path | None) -> Iterator[Example]:
    """Yield the inputs of a file without labels. Raises `DataError` for a bad row."""
    if texts is None:
        return
    for row in rows_for(module, Path(texts), {})():
        if isinstance(row, Bad):
            raise row.error
        yield row


def score_on_test(original: TaskModule, made: TaskModule, dataset: Dataset) -> dict[str, Any]:
    """Return the score of a compressed module on test, its 95 % interval and its loss, as JSON."""
    before, after = (one.fitted.logits(dataset.test.examples) for one in (original, made))
    loss = loss_of(dataset.task, dataset.test, before, after)
    low, high = evidence(dataset.task, dataset.test, after)[0].interval
    return loss.as_json() | {"low": low, "high": high, "rows": len(dataset.test.examples)}


def describe(
    original: TaskModule, made: TaskModule, dataset: Dataset, report: Mapping[str, Any], costs: Mapping[str, Any]
) -> None:
    """Complete the description of a compressed module: its scores, a summary of the held-out rows, its origin, the
    `report` of the search, which has the rungs "kept", and its price tag `costs`."""
    task, kind, splits = dataset.task, kinds.get(dataset.task.kind), (dataset.validation, dataset.test)
    logits = {split.name: made.fitted.logits(split.examples) for split in splits}
    scores = scores_on(task, dataset.test, logits["test"])
    found = {split.name: (logits[split.name], split.targets) for split in splits}
    calibration = {CALIBRATION: calibration_of(kind, found, getattr(task.settings, "costs", None)) or {}}
    tempered = {name: at_temperature(one, temperature_of(calibration)) for name, one in logits.items()}
    answers = [answer for split in splits for answer in kind.decode(tempered[split.name], task, split.examples)]
    held = held_out_summary([example for split in splits for example in split.examples], answers)
    source = {name: original.description[name] for name in ("run", "method", "backbone", "delta_sha256", "scores")}
    record = {"of": source, **report}
    known = {"scores": scores, "held_out": held, "compression": record, "costs": costs} | calibration
    add_to_description(made.folder, known)
    sync_tree(made.folder)


def _costs(search: RungSearch, seconds: float) -> dict[str, Any]:
    """Return the price tag of the current module, with the `seconds` of the search; {} if the original has none."""
    original, stage = search.original, search.stage
    if not original.description.get("costs"):
        return {}
    latency = latency_ratio(original, stage.module, search.data.validation.examples)
    return compressed_costs(original.description["costs"], seconds, stage.bytes, stage.pace.ratio, latency)


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """Provide an empty folder beside `target`, on its disk, removed at the end whatever happens."""
    with storage_errors(target.absolute().parent):
        made = tempfile.TemporaryDirectory(
            dir=target.absolute().parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
        )
    with made as work:
        yield Path(work)


def _report(search: RungSearch, allow: float) -> dict[str, Any]:
    """Return what was tried and what it cost, as JSON."""
    kept = [one.rung for one in search.tried if one.kept]
    spent, rows = search.watch.read(), len(search.data.validation.examples)
    needed = rows_needed(search.allowed) if search.allowed else None
    applied = [one for one in search.tried if one.loss is not None]
    return {
        "task": search.original.task.name,
        "metric": search.original.task.metrics[0],
        "positive": positive_of(search.original.task),
        "allow": allow,
        "aim": search.aim,
        "exported": is_exported(search.stage.module.folder),
        "rows": rows,
        "rows_needed": needed,
        "original": {"method": search.original.description["method"]["name"], "bytes": search.original_bytes},
        "rungs": [one.as_json() for one in search.tried],
        "kept": kept,
        "speed_ratio": search.stage.pace.ratio,
        "joules_ratio": search.stage.pace.joules_ratio,
        "bytes": search.stage.bytes,
        "price": {"wall_seconds": spent.wall_seconds, "cpu_seconds": spent.cpu_seconds},
        "reason": _reason(kept, bool(applied)),
    }


def _reason(kept: Sequence[str], applied: bool) -> str:
    if kept:
        return f"{', '.join(kept)}: the best for the aim among the rungs whose loss was shown to be allowed"
    return "no rung both helps and is shown to lose as little as allowed" if applied else "no rung applies"
