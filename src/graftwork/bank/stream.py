"""Streams of tasks: each adds a module to the bank and leaves the earlier ones unchanged, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from graftwork.bank.bank_folder import BankFolder, require_name
from graftwork.bank.sequential_tuning import Sequential
from graftwork.bank.stream_history import Row
from graftwork.bank.stream_tasks import How, StreamTask, TaskFailed
from graftwork.bank.stream_training import IntoBank
from graftwork.bank.task_version import BankState
from graftwork.config import DEFAULT_BACKBONE, Prices
from graftwork.core.configured_methods import parse_method
from graftwork.core.progress import Progress, part_of, silent
from graftwork.data.splits.split_folder import require_outside
from graftwork.errors import ConfigError, DataError, GraftworkError, StorageError
from graftwork.io.files import only_one_process, require_writable
from graftwork.pretrained.open_backbone import require_kept
from graftwork.run.session import open_shared, writes_texts
from graftwork.run.settings import GivenSettings, RunSettings, takes_settings
from graftwork.run.train import require_use_of_rate

CONTRAST = "full-sequential"


@dataclass(frozen=True)
class Stream:
    """The result of a stream. `content` is exactly that of `stream.json`, at `path`."""

    content: Mapping[str, Any]
    path: Path

    @property
    def failed(self) -> Mapping[str, str]:
        """Tasks that could not be learnt -> error message."""
        failed: Mapping[str, str] = self.content["failed"]
        return failed


@takes_settings
def stream(
    tasks: Sequence[Any],
    bank: str | Path | None = None,
    *,
    method: str = "adapter",
    seed: int = 0,
    learning_rate: float | None = None,
    strict: bool = False,
    out: str | Path | None = None,
    told: Callable[[Row], None] = lambda row: None,
    progress: Progress = silent,
    **given: Unpack[GivenSettings],
) -> Stream:
    """Train `tasks` in order, each as `train` does, and add each to `bank`, which is created if it does not exist.

    After each one, the self-tests of all other tasks of the bank are computed again and compared, bit for bit, with
    their results when added, and so are the hashes of their files. `told` is called with a row for each task. Tasks
    learnt by an earlier call with the same settings are not learnt again.

    With `method="full-sequential"` one network is fine-tuned on one task after another, and all earlier tasks are
    measured again after each: a contrast that shows forgetting. It adds nothing to a bank.

    `out` is the folder of `stream.json`: by default the parent folder of the bank; for the contrast, a folder
    `full-sequential` there. A task that can't be learnt is listed in it under `failed`; with `strict` its error is
    raised. Raises `IncompatibleModule` where an earlier task has changed, and `GraftworkError` for bad settings.
    """
    runs = RunSettings.of(given).runs
    asked, failed = _read(tasks, strict, runs)
    if not tasks:
        raise ConfigError("no tasks given", expected="at least one task file")
    contrast = method.partition(":")[0] == CONTRAST
    chosen = parse_method(method.replace(CONTRAST, "full", 1) if contrast else method)
    require_use_of_rate(chosen, learning_rate)
    how = How(chosen, given, RunSettings.of(given), seed, learning_rate)
    Prices.from_file(how.setup.prices)
    folder = _folder(bank, out, contrast)
    _require_outside(asked, [folder, how.setup.runs, *([] if bank is None else [bank])])
    require_writable(folder)
    with only_one_process(
        folder / ".stream.claim",  # two that extend one stream.json would overwrite each other's rows
        "another process runs this stream",
        "wait for it, or name another folder: --out DIR",
    ):
        learner = _learner(how, asked, bank, folder, contrast)
        learner.history.failed = failed
        for name, message in failed.items():
            told({"task": name, "failed": message})
        _take_all(learner, asked, strict, told, progress)
        learner.history.write()
    return Stream(learner.history.content, learner.history.path)


def _folder(bank: str | Path | None, out: str | Path | None, contrast: bool) -> Path:
    """Return the folder of `stream.json`."""
    if bank is None and not contrast:
        raise ConfigError("no bank is named", do="name a folder: --bank DIR")
    beside = Path(bank).absolute().parent if bank is not None else Path()
    return Path(out) if out is not None else beside / CONTRAST if contrast else beside


def _require_outside(asked: Sequence[StreamTask], made: Sequence[str | Path]) -> None:
    """Raise `ConfigError` where a path that will be `made` lies among the class folders of a task."""
    for one in asked:
        with suppress(DataError, StorageError):  # an unreadable folder is reported when its task is learnt
            require_outside(one.task, made)


def _read(tasks: Sequence[Any], strict: bool, runs: str) -> tuple[list[StreamTask], dict[str, str]]:
    """Read the tasks; return them, and the errors of the others. Data in memory are kept beside the folder `runs`.

    Raises `ConfigError` for invalid names.
    """
    asked: list[StreamTask] = []
    failed: dict[str, str] = {}
    for number, given in enumerate(tasks, 1):
        try:
            one = StreamTask.of(given, runs)
        except GraftworkError as error:
            if strict:
                raise
            failed[str(given) if isinstance(given, str | Path) else f"task {number}"] = error.message
            continue
        require_name(one.task.name)
        if one.task.name in [other.task.name for other in asked]:
            raise ConfigError(
                "two tasks have the same name", got=one.task.name, do='give one of them another: name = "…" in its file'
            )
        asked.append(one)
    return asked, failed


def _learner(
    how: How, asked: Sequence[StreamTask], bank: str | Path | None, folder: Path, contrast: bool
) -> Sequential | IntoBank:
    """Open the learner; every error in the settings is raised here, before any training."""
    is_bank = bank is not None and (Path(bank) / "bank.json").exists()
    state = BankFolder(Path(bank)).state() if bank is not None and is_bank else BankState()
    named = next((one.settings["backbone"] for one in asked if "backbone" in one.settings), DEFAULT_BACKBONE)
    if state.backbone is not None and how.backbone is None:
        named = state.backbone["id"]
        require_kept(named)
    setup = replace(how.setup, backbone=how.backbone or named)
    if state.precision is not None and setup.precision == "auto":
        setup = replace(setup, precision=state.precision)
    how = replace(how, setup=setup)
    shared = open_shared([how.method], setup, how.method.method.uses_backbone and _write(asked, contrast, state))
    require_writable(Path(setup.runs))
    return Sequential(how, shared, folder) if contrast or bank is None else IntoBank(how, shared, Path(bank), folder)


def _write(asked: Sequence[StreamTask], contrast: bool, state: BankState) -> bool:
    """Return whether the tasks, or those already in the bank, need a network that writes texts.

    Raises `ConfigError` for such a task in the contrast, where every task gets a head, and in a new bank whose first
    task is of another sort.
    """
    writing = [one.task for one in asked if writes_texts(one.task.kind)]
    if writing and contrast:
        raise ConfigError(
            f"{CONTRAST} gives every task a head, and a task that writes texts has none",
            got=", ".join(task.name for task in writing),
            do="leave these tasks out, or learn them into a bank: --bank DIR",
        )
    if writing and state.backbone is None and writing[0] is not asked[0].task:
        raise ConfigError(
            "in a new bank on a network that writes, the first task must be one that writes",
            got=f"{asked[0].task.name} before {writing[0].name}",
            do=f"name {writing[0].name} first; the others may follow in any order",
        )
    return bool(writing) or bool((state.backbone or {}).get("writes"))


def _take_all(
    learner: Sequential | IntoBank,
    asked: Sequence[StreamTask],
    strict: bool,
    told: Callable[[Row], None],
    progress: Progress,
) -> None:
    """Learn the tasks; those learnt by earlier commands come first, in their order."""
    order = list(learner.history.rows)
    known = {name: place for place, name in enumerate(order)}
    tasks = sorted(asked, key=lambda one: known.get(one.task.name, len(known)))
    for place, one in enumerate(tasks):
        try:
            row = learner.take(one, part_of(progress, place, len(tasks), one.task.name))
        except TaskFailed as error:
            if strict:
                raise
            learner.history.failed[one.task.name] = error.message
            row = {"task": one.task.name, "failed": error.message}
        told(row)
