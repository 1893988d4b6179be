"""The folder of a bank. `bank.json` defines its state and is replaced atomically, after the files that it names."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graftwork.bank.ledger import (
    NAME,
    Change,
    Ledger,
    LedgerTask,
    append,
    cut,
    next_version,
    read_ledger,
    replay,
    require_agreement,
    require_free,
    tail_of,
)
from graftwork.bank.leftovers import TASKS, sweep
from graftwork.bank.task_version import (
    BOARD,
    AddedModule,
    BankState,
    PlacedTask,
    TaskEntry,
    bytes_of,
    copy_module,
    digest_of,
    is_intact,
    require_description,
    require_digest,
    require_there,
    require_vacant,
    state_with,
)
from graftwork.errors import ConfigError, GraftworkError, IncompatibleModule, StorageError, UnknownName, clip, nearest
from graftwork.io.files import read_json, storage_errors, sync_folder, write_json
from graftwork.io.json_limits import MODULE
from graftwork.io.locks import hold_lock
from graftwork.io.new_folder import new_folder
from graftwork.io.plain_files import inside, require_plain_folder
from graftwork.module.module_place import module_folder

FORMAT = 1
OWN = ("bank.json", "ledger.jsonl", ".lock", "tasks")  # entries that a bank writes
SHOWN = 20  # maximum number of names in a message
Test = Callable[[Path], object]  # opens and tests the module in a folder, or raises


class BankFolder:
    """A bank on disk. Readers take no lock; a writer holds one, and first repairs what a killed writer left behind."""

    def __init__(self, root: Path):
        self.root = root

    @classmethod
    def create(
        cls, root: Path, *, backbone: Mapping[str, Any] | None = None, precision: str | None = None
    ) -> BankFolder:
        """Create a bank without tasks in a new or empty folder. Raises `StorageError`."""
        with storage_errors(root):
            if (root / "bank.json").exists():
                raise StorageError("a bank exists already", where=str(root), do="add tasks to it: graft bank add")
        with storage_errors(root), new_folder(root) as made:
            (made / TASKS).mkdir()
            (made / ".lock").touch()
            first = Ledger().next("create")
            append(made / "ledger.jsonl", first)
            cls(made)._write(BankState(backbone, precision, head=first.hash))
        return cls(root)

    def state(self) -> BankState:
        """Read the current state. Raises `StorageError` when there is none, `IncompatibleModule` for a damaged one."""
        path = self.root / "bank.json"
        if not path.is_file() and not path.is_symlink():
            raise StorageError(
                "no bank here",
                where=str(self.root),
                expected="a folder with bank.json in it",
                do=f"check the path, or make one: graft bank create {shlex.quote(str(self.root))}",
            )
        for name in OWN:
            self._require_own(name)
        content = read_json(path, MODULE)
        try:
            if content.pop("format") != FORMAT:
                raise IncompatibleModule(
                    "written by another version of Graftwork",
                    where=str(path),
                    expected=f"format {FORMAT}",
                    do="open it with the version that wrote it",
                )
            tasks = {name: PlacedTask(**placed) for name, placed in content.pop("tasks").items()}
            for name, placed in tasks.items():  # these become paths
                if not NAME.fullmatch(name) or type(placed.version) is not int:
                    raise ValueError(f"{name!r}, version {placed.version!r}")
            return BankState(**content, tasks=tasks)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise IncompatibleModule(
                "bank.json is damaged",
                where=str(path),
                got=f"{type(error).__name__}: {error}",
                do="restore bank.json and ledger.jsonl from one backup",
            ) from None

    def _require_own(self, name: str) -> None:
        """Raise `StorageError` where a part of the bank is a link: writes would go outside the bank."""
        with storage_errors(self.root / name), contextlib.suppress(FileNotFoundError):
            inside(self.root, name)

    def ledger(self, state: BankState) -> Ledger:
        """Read the changes that led to `state`. Raises `StorageError` when the chain is broken or disagrees with it."""
        ledger = read_ledger(self.root / "ledger.jsonl", state.head)
        require_agreement({name: (one.version, one.digest) for name, one in state.tasks.items()}, ledger, self.root)
        return ledger

    def folder(self, name: str, version: int) -> Path:
        """Return the path of a version of a task."""
        return self.root / TASKS / name / str(version)

    def entry(self, name: str, version: int | None = None, state: BankState | None = None) -> TaskEntry:
        """Return a task in its current version, or in another stored one.

        Raises `UnknownName`, `ConfigError` for a version that was never stored, `StorageError` for a missing folder,
        `IncompatibleModule` for a damaged one.
        """
        state = state or self.state()
        placed = _placed(state, name, self.root)
        if version is not None and version != placed.version:
            placed = self._former(replay(self.ledger(state).changes)[name], name, version)
        return self._described(name, placed)

    def by_version(self, state: BankState, current: Mapping[str, TaskEntry]) -> dict[str, TaskEntry]:
        """Return every stored version of the `current` tasks as `TASK@VERSION`; a damaged one is left out.

        Raises `StorageError` for a broken ledger.
        """
        kept, found = replay(self.ledger(state).changes), {}
        for name, entry in current.items():
            for version in sorted(kept[name].versions) if name in kept else ():
                told = f"{name}@{version}"
                with contextlib.suppress(StorageError, IncompatibleModule):
                    old = version != entry.version
                    one = self._described(name, self._former(kept[name], name, version)) if old else entry
                    found[told] = replace(one, name=told)
        return found

    def _described(self, name: str, placed: PlacedTask) -> TaskEntry:
        folder = self.folder(name, placed.version)
        require_there(folder)
        self._require_own(f"{TASKS}/{name}/{placed.version}/module.json")
        description = read_json(folder / "module.json", MODULE)
        require_description(description, folder)
        board = (folder / BOARD).is_file()
        description.pop("facts", None)
        return TaskEntry(name, **asdict(placed), folder=folder, description=description, has_board=board)

    def versions(self, name: str, state: BankState | None = None) -> list[int]:
        """Return the stored versions, oldest first. Raises `UnknownName`, or `StorageError` for a broken ledger."""
        state = state or self.state()
        _placed(state, name, self.root)
        return sorted(replay(self.ledger(state).changes)[name].versions)

    def add(self, module: Path, name: str | None, test: Test, board: Path | None = None) -> AddedModule:
        """Add a copy of a module as the newest version of `name` (None: its task's name), if `test` passes on the copy.

        A module equal to the current version is not added again, unless the files of that version are damaged.
        Raises `ConfigError` for a bad name, `IncompatibleModule` for another backbone, `StorageError`.
        """
        module = module_folder(module)
        require_plain_folder(module)
        description = read_json(module / "module.json", MODULE)
        require_description(description, module)
        name = name if name is not None else str(description["task"]["name"])
        require_name(name)
        with self._changing() as (state, ledger):
            state = state_with(description, state, module)
            with self._incoming(name) as copy:
                copy_module(module, copy, board)
                digest = digest_of(copy)
                now = state.tasks.get(name)
                if now is not None and now.digest == digest and is_intact(self.folder(name, now.version), digest):
                    return AddedModule(name, now.version, new=False)
                test(copy)
                change = ledger.next("add", name, version := next_version(ledger, name), digest)
                placed = PlacedTask(version, digest, bytes_of(copy), change.time)
                require_vacant(self.folder(name, version))
                append(self.root / "ledger.jsonl", change)
                self._place(copy, self.folder(name, version))
                self._write(replace(state, head=change.hash, tasks={**state.tasks, name: placed}))
        return AddedModule(name, version, new=True)

    def remove(self, name: str) -> None:
        """Remove a task with all its versions; only its lines in the ledger remain."""
        with self._changing() as (state, ledger):
            placed = _placed(state, name, self.root)
            change = ledger.next("remove", name, placed.version, placed.digest)
            append(self.root / "ledger.jsonl", change)
            tasks = {task: other for task, other in state.tasks.items() if task != name}
            self._write(replace(state, head=change.hash, tasks=tasks))
            sweep(self.root, tasks)

    def rename(self, old: str, new: str) -> None:
        """Rename a task with all its versions. Raises `ConfigError` for a bad name or one that was used before."""
        require_name(new)
        with self._changing() as (state, ledger):
            placed = _placed(state, old, self.root)
            if new in state.tasks:
                raise ConfigError(f"a task {new!r} exists already", where=str(self.root), do="choose another name")
            require_free(ledger, old, new, self.root)
            change = ledger.next("rename", old, placed.version, placed.digest, to=new)
            append(self.root / "ledger.jsonl", change)
            for version in replay(ledger.changes)[old].versions:
                with self._incoming(new) as copy:
                    copy_module(self.folder(old, version), copy)
                    self._place(copy, self.folder(new, version))
            tasks = {new if task == old else task: other for task, other in state.tasks.items()}
            self._write(replace(state, head=change.hash, tasks=tasks))
            sweep(self.root, tasks)

    def rollback(self, name: str, test: Test, to: int | None = None) -> PlacedTask:
        """Make an older version current (`to`, by default the previous one), if `test` passes on it.

        Raises `UnknownName`, `ConfigError` for a version that is not stored, `IncompatibleModule` for an edited one.
        """
        with self._changing() as (state, ledger):
            current = _placed(state, name, self.root).version
            if to is None:
                to = max((one for one in self.versions(name, state) if one < current), default=None)
            if to is None or to == current:
                what = (
                    f"{name!r} is at version {current} already" if to else f"{name!r} has no version before {current}"
                )
                raise ConfigError(what, where=str(self.root), do="graft bank show lists the versions")
            former = self._former(replay(ledger.changes)[name], name, to)
            require_digest(self.folder(name, to), former.digest)
            test(self.folder(name, to))
            change = ledger.next("rollback", name, to, former.digest)
            append(self.root / "ledger.jsonl", change)
            self._write(replace(state, head=change.hash, tasks={**state.tasks, name: former}))
        return former

    def _former(self, kept: LedgerTask, name: str, version: int) -> PlacedTask:
        """Return a stored version in the form of its `bank.json` entry."""
        if version not in kept.versions:
            listed = ", ".join(map(str, sorted(kept.versions)))
            raise ConfigError(f"{name!r} has no version {version}", where=str(self.root), expected=f"one of {listed}")
        return PlacedTask(version, kept.versions[version], bytes_of(self.folder(name, version)), kept.added[version])

    @contextlib.contextmanager
    def _changing(self) -> Iterator[tuple[BankState, Ledger]]:
        """Hold the lock and yield the repaired state and ledger; an exception in the block undoes the change."""
        self.state()
        with contextlib.ExitStack() as lock:
            with storage_errors(self.root):
                lock.enter_context(hold_lock(self.root / ".lock"))
            found = self._repaired()
            try:
                yield found
            except BaseException:
                with contextlib.suppress(OSError, GraftworkError):  # then the next writer does it
                    self._repaired(undo=True)
                raise

    def _repaired(self, *, undo: bool = False) -> tuple[BankState, Ledger]:
        """Finish or undo an unfinished change, return state and ledger. Raises `StorageError` for a damaged bank."""
        state = self.state()
        ledger = self.ledger(state)
        if ledger.after > 1:
            raise StorageError(
                f"bank.json is too old: the ledger has {ledger.after} later lines",
                where=str(self.root),
                expected="at most one later line, of an interrupted change",
                do="restore the newest bank.json; nothing was changed now",
            )
        if ledger.after:
            path = self.root / "ledger.jsonl"
            tail = tail_of(path, ledger)
            finished = None if tail is None or undo else self._finished(state, ledger, tail)
            if finished is not None:
                self._write(finished)
                state, ledger = finished, self.ledger(finished)
            else:
                if tail is not None and tail.action == "add":
                    shutil.rmtree(self.folder(tail.task or "", tail.version or 0), ignore_errors=True)
                cut(path, ledger)
        sweep(self.root, state.tasks)
        return state, ledger

    def _finished(self, state: BankState, ledger: Ledger, tail: Change) -> BankState | None:
        """Return the state after `tail`, a change missing from `bank.json`; None if a folder that it needs is missing.

        The writer of that change was killed, or `bank.json` was restored from a copy made before it.
        """
        changes, name = (*ledger.changes, tail), tail.to or tail.task or ""
        try:
            kept = replay(changes)
            tasks = {task: placed for task, placed in state.tasks.items() if task in kept}
            if name in kept:
                needed = kept[name].versions if tail.action == "rename" else [kept[name].current]
                if not all(self.folder(name, version).is_dir() for version in needed):
                    return None
                tasks[name] = self._former(kept[name], name, kept[name].current)
        except (KeyError, ConfigError):
            return None  # it changes a task or version that does not exist
        if tail.action == "add":
            folder = self.folder(name, tasks[name].version)
            description = read_json(folder / "module.json", MODULE)
            require_description(description, folder)
            state = state_with(description, state, folder)
        return replace(state, head=tail.hash, tasks=tasks)

    @contextlib.contextmanager
    def _incoming(self, name: str) -> Iterator[Path]:
        """Yield a temporary folder beside the tasks, removed at the end unless it was moved into place."""
        with storage_errors(self.root / TASKS):
            (self.root / TASKS).mkdir(exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=self.root / TASKS, prefix=f".{name}."))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _place(self, copy: Path, folder: Path) -> None:
        with storage_errors(folder):
            folder.parent.mkdir(exist_ok=True)
            copy.chmod(0o755)
            os.rename(copy, folder)
            sync_folder(folder.parent)
            sync_folder(folder.parent.parent)

    def _write(self, state: BankState) -> None:
        tasks = {name: vars(placed) for name, placed in state.tasks.items()}
        write_json(self.root / "bank.json", {"format": FORMAT} | vars(state) | {"tasks": tasks})


def require_name(name: str) -> None:
    """Raise `ConfigError` for a string that can't be the name of a task in a bank."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            "not a name for a task",
            got=clip(name),
            expected="letters, digits, _, - and ., at most 64, the first not a dot",
            do="give it another name",
        )


def _placed(state: BankState, name: str, where: Path) -> PlacedTask:
    if name not in state.tasks:
        raise unknown_task(name, state.tasks, where)
    return state.tasks[name]


def require_folder(given: Any) -> BankFolder:
    """Return `given`, which must be a `BankFolder`. Raises `ConfigError` for anything else."""
    if not isinstance(given, BankFolder):
        raise ConfigError("a bank is opened by its path", got=clip(repr(given)), do="write gw.Bank.open(PATH)")
    return given


def unknown_task(name: str, tasks: Iterable[str], where: Path) -> UnknownName:
    """Return the error that names the nearest task and some of the others."""
    known = sorted(tasks)
    near = nearest(name, known)
    if len(known) > SHOWN:
        known = [*([near] if near else []), *(task for task in known[: SHOWN - 1] if task != near), "…"]
    return UnknownName("task", name, known, where=str(where))
