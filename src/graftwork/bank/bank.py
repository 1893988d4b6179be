"""A bank: a folder of task modules on one frozen backbone, opened on first use and answered in joint batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from graftwork.bank.bank_display import bank_html, bank_text
from graftwork.bank.bank_folder import BankFolder, require_folder, unknown_task
from graftwork.bank.integrity import BankFinding, examine
from graftwork.bank.mixed_batch import Mixture
from graftwork.bank.task_version import BankChanges, BankState, Failure, TaskEntry, require_digest
from graftwork.core.arguments import told_arguments
from graftwork.core.backbone import Backbone, BackboneCard
from graftwork.core.example import Example
from graftwork.core.writing import Instruction, Tell, with_instruction
from graftwork.errors import ConfigError, IncompatibleModule, StorageError, UnknownName
from graftwork.io.files import read_json
from graftwork.machine.environment import numerics, resolve_device
from graftwork.module.input_format import GivenInputs
from graftwork.module.inputs import example_of_given, takes
from graftwork.module.task_module import TaskModule, known_backbone
from graftwork.pretrained.open_backbone import PRECISIONS, lasting_card, open_backbone

Answer = dict[str, Any]
Row = tuple[str, GivenInputs]  # task name, or `TASK@VERSION`, and its inputs


class Bank:
    """An open bank. Thread-safe: one thread may predict rows while another loads changes."""

    def __init__(self, folder: BankFolder, device: str = "cpu"):
        self._folder, self._device = require_folder(folder), device
        self._mixture = Mixture()
        self._backbone: Backbone | None = None
        self._state = BankState()
        self._entries: Mapping[str, TaskEntry] = {}  # replaced as a whole, never mutated
        self._by_version: tuple[BankState | None, Mapping[str, TaskEntry]] = (None, {})  # a state and its versions
        self._failed: Mapping[str, Failure] = {}  # replaced as a whole too
        self._identity: tuple[str, str] | None = None  # revision and precision of the open backbone
        self._loaded: dict[str, str] = {}  # task -> digest of the version in use
        self._changing = threading.RLock()  # held while tasks are opened; acquired before `_answering`
        self._answering = threading.RLock()  # held while rows are answered or tasks are swapped

    @classmethod
    @told_arguments
    def create(cls, path: str | Path, *, backbone: str | None = None, precision: str = "auto") -> Bank:
        """Create a bank without tasks. Without `backbone`, the first task with one sets backbone and precision.

        Raises `StorageError` when a bank exists already or the folder can't be written, `ConfigError`.
        """
        if precision not in ("auto", *PRECISIONS):
            raise UnknownName("precision", precision, ["auto", *PRECISIONS])
        chosen = None if precision == "auto" else precision
        card = lasting_card(open_backbone(backbone, precision="fp32").card) if backbone is not None else None
        return cls.open(BankFolder.create(Path(path), backbone=card, precision=chosen).root)

    @classmethod
    @told_arguments
    def open(cls, path: str | Path, *, device: str = "auto") -> Bank:
        """Open the bank in this folder. Each task is opened, self-tested and loaded on first use.

        Raises `StorageError` when there is none, `IncompatibleModule` for a damaged one, `ConfigError` for a device.
        """
        bank = cls(BankFolder(Path(path)), resolve_device(device))
        with bank._changing:
            bank._take(bank._folder.state(), lazily=True)
        return bank

    __repr__, _repr_html_ = bank_text, bank_html

    @property
    def path(self) -> Path:
        """The bank's folder."""
        return self._folder.root

    @property
    def tasks(self) -> Mapping[str, TaskEntry]:
        """The tasks that the bank can predict, by name."""
        return MappingProxyType(self._entries)

    @property
    def by_version(self) -> Mapping[str, TaskEntry]:
        """Every stored version by `TASK@VERSION`, which is accepted like a task's name. Raises `StorageError`."""
        state, known = self._state, self._by_version  # another thread may replace either meanwhile
        if known[0] is not state:
            known = self._by_version = state, self._folder.by_version(state, self._entries)
        return MappingProxyType(known[1])

    @property
    def failed(self) -> Mapping[str, str]:
        """Tasks whose newest version could not be opened -> error message."""
        return {name: failure.message for name, failure in self._failed.items()}

    @property
    def card(self) -> BackboneCard | None:
        """The backbone's card; None before the first task brought a backbone."""
        return BackboneCard(**self._state.backbone) if self._state.backbone is not None else None

    @property
    def precision(self) -> str | None:
        """The precision, "bf16" or "fp32"; None before the first task brought a backbone."""
        return self._state.precision

    def open_backbone(self) -> Backbone:
        """Open the frozen backbone of all tasks. Raises `ConfigError` before there is one, `IncompatibleModule`."""
        if self._state.backbone is not None:
            return self._open_backbone(self._state)
        raise ConfigError("the bank has no backbone yet", where=str(self.path), do="add a task to it")

    def module(self, name: str, version: int | None = None) -> TaskModule:
        """Open and test a task anew. Raises `UnknownName`, `ConfigError`, `IncompatibleModule` or `StorageError`."""
        return self._opened(self._entry(name) if version is None else self._folder.entry(name, version))

    def add(self, module: str | Path, name: str | None = None, *, board: str | Path | None = None) -> TaskEntry:
        """Add a copy of a task module (or a run's) as the newest version of task `name` (default: its own name).

        `board` is a comparison's folder, whose leaderboard is kept with the task. The copy is tested before it becomes
        visible. Raises `IncompatibleModule` for another backbone than the bank's, `ConfigError` for a bad name,
        `StorageError`; the bank is then unchanged.
        """
        added = self._folder.add(Path(module), name, self._tested, Path(board) if board is not None else None)
        self._read_again()
        return self._entry(added.name)

    def remove(self, name: str) -> None:
        """Remove a task with all its versions. Raises `UnknownName` or `StorageError`."""
        self._folder.remove(name)
        self._read_again()

    def rename(self, old: str, new: str) -> TaskEntry:
        """Rename a task. Raises `UnknownName`, `ConfigError` or `StorageError`."""
        self._folder.rename(old, new)
        self._read_again()
        return self._entry(new)

    def rollback(self, name: str, to: int | None = None) -> TaskEntry:
        """Make version `to` current, by default the previous one. Raises `UnknownName`, `ConfigError`, and as `add`."""
        self._folder.rollback(name, self._tested, to)
        self._read_again()
        return self._entry(name)

    def versions(self, name: str) -> list[int]:
        """Return the stored versions of a task, oldest first. Raises `UnknownName` or `StorageError`."""
        return self._folder.versions(name)

    def predict(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the prediction of each row, in order; rows of any tasks, kinds and methods share one forward pass.

        Raises `UnknownName` with the nearest task, `ConfigError` for inputs that a task does not take, and as `module`
        for a task that can't be opened.
        """
        rows = list(rows)
        examples = self._examples(rows)
        return self.answers([(task, example) for (task, _), example in zip(rows, examples, strict=True)])

    def answers(self, rows: Sequence[tuple[str, Example]], tell: Tell | None = None) -> list[Answer]:
        """Predict as `predict`, for rows that are examples. Raises `UnknownName`, `ConfigError`, and as `module`.

        While a task writes the text of a row, `tell(row number, text)` is called with the text so far; an exception
        that it raises ends the writing.
        """
        names = list(dict.fromkeys(task for task, _ in rows))
        while names:
            with self._answering:  # no task may be removed between the check and the answer
                if all(self._answers(name) for name in names):
                    self._require_inputs(rows)
                    return self._mixture.answers(rows, tell)
            self.load(names)
        return []

    def predict_all(self, given: GivenInputs, tasks: Iterable[str] | None = None) -> dict[str, Answer]:
        """Predict one input by `tasks`, by default all tasks that take such inputs; shared work is computed once.

        By default, tasks that can't be opened are left out (see `failed`). Raises as `predict` for named tasks, or when
        none can be opened, and `ConfigError` when no task takes such inputs.
        """
        names = list(tasks) if tasks is not None else self.taking(given)
        if not names and tasks is None:
            raise ConfigError(
                "no task of this bank takes such inputs",
                where=str(self.path),
                do="graft bank show BANK TASK says what a task reads",
            )
        if tasks is None:
            self.load_all(names)
            names = [name for name in names if self._answers(name)] or names
        return dict(zip(names, self.predict([(name, given) for name in names]), strict=True))

    def taking(self, given: GivenInputs) -> list[str]:
        """Return the names of the tasks that take such inputs."""
        return [name for name, entry in self._entries.items() if takes(entry.roles, given)]

    def cut(self, rows: Sequence[Row]) -> list[bool]:
        """Return, for each row, whether it is longer than the backbone's maximum length and is therefore truncated."""
        found = [False] * len(rows)
        groups: dict[tuple[Any, ...], dict[int, Example]] = {}
        for place, (example, (task, _)) in enumerate(zip(self._examples(rows), rows, strict=True)):
            if (about := self._entry(task).description)["backbone"] is not None:
                groups.setdefault((Instruction.of_question(about["task"]), *about["roles"]), {})[place] = example
        for (told, *_), group in groups.items():
            backbone = with_instruction(self.open_backbone(), told)
            if backbone.encode(list(group.values())).cut:
                for place, example in group.items():
                    found[place] = backbone.encode([example]).cut > 0
        return found

    def load(self, names: Iterable[str]) -> None:
        """Open and test those of these tasks that are not open yet. Raises as `module`."""
        missing = [name for name in names if not self._answers(name)]
        if missing:
            with self._changing:
                for name in missing:
                    if not self._answers(name):
                        self._load(name)

    def load_all(self, names: Iterable[str] | None = None) -> Mapping[str, str]:
        """Open and test `names` (default: all tasks); return task -> message for failures, which `refresh` retries."""
        for name in self._entries if names is None else names:
            if not self._tried(name):
                with self._changing:  # other threads record failures too
                    try:
                        self.load([] if self._tried(name) else [name])
                    except Exception as error:  # any error: the other tasks continue
                        digest = self._entries[name].digest if name in self._entries else ""  # "": removed meanwhile
                        self._failed = {**self._failed, name: Failure.of(digest, error)}
        return self.failed

    def _tried(self, name: str) -> bool:
        entry, known = self._entries.get(name), self._failed.get(name)
        return entry is None or entry.digest in (self._loaded.get(name), known and known.digest)

    def refresh(self) -> BankChanges:
        """Load changes made to the folder by others: open and test them while the old versions answer, then swap.

        A task that can't be opened keeps its old version, and the next call retries it. Raises `StorageError` or
        `IncompatibleModule` when the bank itself can't be read; its state is then unchanged.
        """
        with self._changing:
            state = self._folder.state()
            if state.head == self._state.head and not self._failed:
                return BankChanges()
            return self._take(state, lazily=False)

    def examine(self) -> Iterator[BankFinding]:
        """Check the ledger, every file of every version and every self-test, one by one."""
        return examine(self._folder, self._tested)

    def check(self) -> list[BankFinding]:
        """Return the findings of `examine` that report a problem; empty if the bank is intact."""
        return [finding for finding in self.examine() if finding.problem]

    def _require_inputs(self, rows: Sequence[tuple[str, Example]]) -> None:
        """Raise `ConfigError` for inputs that a task does not take, e.g. those of a version since replaced."""
        for number, (name, example) in enumerate(rows, 1):
            roles = self._entry(name).roles
            if example.inputs.keys() != set(roles):
                got, where = ", ".join(example.inputs), f"row {number}, task {name!r}"
                raise ConfigError("the task takes other inputs", where=where, got=got, expected=", ".join(roles))

    def _answers(self, name: str) -> bool:
        """Return whether the task is loaded in its current version."""
        with self._answering:
            return self._loaded.get(name) == self._entry(name).digest

    def _load(self, name: str) -> None:
        entry = self._entry(name)
        failure = self._failed.get(name)
        if failure is not None and failure.digest == entry.digest:
            raise self._unopened(name)
        try:
            self._put(entry, self._opened(entry))
        except (StorageError, IncompatibleModule):
            changes = self._read_again()  # another process may have changed the task since the bank was read
            if name not in changes.updated + changes.removed:
                raise
            self.load([name])

    def _take(self, state: BankState, lazily: bool) -> BankChanges:
        """Switch to `state`; new versions are opened first or, if `lazily`, on first use."""
        self._require_backbone_of(state)
        before, former = self._entries, self._failed
        entries: dict[str, TaskEntry] = {}
        failed: dict[str, Failure] = {}
        for name, placed in state.tasks.items():
            old, known = before.get(name), former.get(name)
            same = old is not None and (old.version, old.digest) == (placed.version, placed.digest)
            if old is not None and same and (known is None or lazily):
                entries[name] = old
                failed |= {name: known} if known is not None and known.digest == placed.digest else {}
                continue
            try:
                entry = self._folder.entry(name, state=state)
                if not lazily or name in self._loaded:
                    self._put(entry, self._opened(entry, state))
                entries[name] = entry
            except Exception as error:  # any error: the other tasks continue, and this one keeps its old version
                failed[name] = Failure.of(placed.digest, error)
                entries |= {name: old} if old is not None else {}
        removed = tuple(name for name in before if name not in state.tasks)
        with self._answering:
            for name in (*removed, *(name for name in self._loaded if "@" in name)):
                self._mixture.drop(name)
                self._loaded.pop(name, None)
            self._entries, self._state, self._failed = entries, state, failed
        changed = [name for name in entries if before.get(name) is not entries[name]]
        added = tuple(name for name in changed if name not in before)
        updated = tuple(name for name in changed if name in before)
        return BankChanges(added, updated, removed, {name: failure.message for name, failure in failed.items()})

    def _put(self, entry: TaskEntry, module: TaskModule) -> None:
        """Make this version the one that predicts; the module itself is not stored here."""
        with self._answering:
            self._mixture.put(entry.name, module)
            self._loaded[entry.name] = entry.digest
            if "@" not in entry.name:
                self._entries = {**self._entries, entry.name: entry}

    def _opened(self, entry: TaskEntry, state: BankState | None = None) -> TaskModule:
        """Open a version: check its files against the digest, run the self-test, and give the task the bank's name."""
        require_digest(entry.folder, entry.digest)
        module = self._tested(entry.folder, state)
        return replace(module, task=module.task.resolved(name=entry.name))

    def _tested(self, folder: Path, state: BankState | None = None) -> TaskModule:
        """Load the module in `folder`, on the bank's backbone if it has one."""
        state = state or self._state
        decided = state.backbone is not None and state.precision is not None
        uses = read_json(folder / "module.json").get("backbone") is not None
        backbone = self._open_backbone(state) if decided and uses else None
        return TaskModule.load(folder, device=self._device, backbone=backbone)

    def _open_backbone(self, state: BankState) -> Backbone:
        opened = self._backbone
        if opened is not None:  # readers do not wait for a change that is being loaded
            return opened
        with self._changing:
            if self._backbone is not None:
                return self._backbone
            precision = state.precision or numerics("auto", self._device)["precision"]
            told = {"backbone": state.backbone, "backbone_seed": state.backbone_seed, "precision": precision}
            opened = known_backbone(self.path, told, self._device)
            if state.precision is not None:
                self._backbone, self._identity = opened, (opened.card.revision, precision)
            return opened

    def _require_backbone_of(self, state: BankState) -> None:
        """Raise `IncompatibleModule` when the folder now holds a bank with another backbone than the open one."""
        if self._identity is None or state.backbone is None:
            return
        found = (state.backbone["revision"], state.precision or self._identity[1])
        if found != self._identity:
            raise IncompatibleModule(
                "the bank has another backbone than when it was opened",
                where=str(self.path),
                got=f"revision {found[0][:16]}, in {found[1]}",
                expected=f"revision {self._identity[0][:16]}, in {self._identity[1]}",
                do="open it again",
            )

    def _read_again(self) -> BankChanges:
        with self._changing:
            return self._take(self._folder.state(), lazily=True)

    def _examples(self, rows: Sequence[Row]) -> list[Example]:
        """Return the rows' inputs as examples; tasks with the same roles share the example of the same input object."""
        known: dict[tuple[tuple[str, ...], int], Example] = {}
        examples = []
        for number, (task, given) in enumerate(rows, 1):
            roles = self._entry(task).roles
            if (roles, id(given)) not in known:
                try:
                    known[roles, id(given)] = example_of_given(roles, number, given)
                except ConfigError as error:
                    told = {"got": error.got, "expected": error.expected, "do": error.do}
                    raise ConfigError(error.what, where=f"row {number}, task {task!r}", **told) from None
            examples.append(known[roles, id(given)])
        return examples

    def _entry(self, name: str) -> TaskEntry:
        entries = self.by_version if "@" in name else self._entries
        if name in entries:
            return entries[name]
        if name in self._failed:
            raise self._unopened(name)
        raise unknown_task(name, entries, self.path)

    def _unopened(self, name: str) -> IncompatibleModule:
        message = self._failed[name].message
        return IncompatibleModule(
            f"the task {name!r} can't be opened",
            where=str(self.path),
            got=message,
            do="graft bank check says which parts are damaged; roll back or add it again",
        )
