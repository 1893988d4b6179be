"""Integrity of a bank: the check of all its parts, and the check that files and logits stay bit-identical."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.ledger import replay
from graftwork.bank.task_version import PlacedTask, require_digest
from graftwork.core.backbone import Backbone
from graftwork.core.kind import OwnOutputs
from graftwork.errors import GraftworkError, IncompatibleModule
from graftwork.io.files import digest
from graftwork.module.task_module import TaskModule
from graftwork.registry import kinds


@dataclass(frozen=True)
class VersionRecord:
    """The recorded state of one version of a task."""

    version: int
    files: str  # digest of the folder
    logits: str  # sha256 of the self-test's logits


class UnchangedCheck:
    """Records file hashes and self-test logits of every task of a bank, and raises where they have changed since."""

    def __init__(self, store: BankFolder, device: str, backbone: Backbone | None, noted: Mapping[str, Any]):
        """`noted` are `notes` from the same processor and the same code: on others, logits differ in the last bits.

        Modules are opened on `backbone`, the one that tasks are trained on; without it, on their own. Raises
        `IncompatibleModule` for a task that differs from its record, or that can't be opened.
        """
        self.store, self.device, self._backbone = store, device, backbone
        self._seen = {name: VersionRecord(**note) for name, note in noted.items()}
        self.compare()

    @property
    def notes(self) -> dict[str, Any]:
        """The records for a later command, as JSON."""
        return {name: asdict(seen) for name, seen in self._seen.items()}

    def compare(self, added: str | None = None) -> int:
        """Check every task against its record; return how many were compared. `added` is new, or has a new version.

        Raises `IncompatibleModule` for the first that differs.
        """
        compared, before = 0, self._seen
        self._seen = {}
        for name, placed in self.store.state().tasks.items():
            known = before.get(name)
            same = known is not None and (known.version, known.files) == (placed.version, placed.digest)
            known = known if same else None  # not the record of another version, or of another task of the same name
            try:
                self._seen[name] = self._look(name, placed, known)
            except GraftworkError:
                if self.store.state().tasks.get(name) == placed:
                    raise
                continue  # another process has removed or changed it meanwhile
            compared += known is not None and name != added
        return compared

    def _look(self, name: str, placed: PlacedTask, known: VersionRecord | None) -> VersionRecord:
        """Return the current state of a task. Raises where it differs from the record `known`."""
        folder = self.store.folder(name, placed.version)
        require_digest(folder, placed.digest)
        logits = self._logits(folder)
        if known is not None and logits != known.logits:
            raise IncompatibleModule(
                f"the task {name!r} has changed since it was added: its self-test gives other logits",
                where=str(folder),
                got=f"sha256 {logits[:16]}…",
                expected=f"sha256 {known.logits[:16]}…",
                do=f"see graft bank check {self.store.root}; the stream stopped here",
            )
        return VersionRecord(placed.version, placed.digest, logits)

    def open(self, folder: Path) -> TaskModule:
        """Open a module and run its self-test. Raises `IncompatibleModule`."""
        module = TaskModule.load(folder, device=self.device, backbone=self._backbone)
        self._backbone = self._backbone or module.backbone  # kept, so that it is opened only once
        return module

    def _logits(self, folder: Path) -> str:
        """Return a hash of the self-test's logits, exact to the last bit."""
        module = self.open(folder)
        assert module.tested is not None
        if isinstance(kinds.get(module.task.kind), OwnOutputs):
            return digest(module.tested.tolist())
        logits = np.ascontiguousarray(module.tested, dtype="<f8")  # (N, C) or (W, C)
        return hashlib.sha256(repr(logits.shape).encode() + logits.tobytes()).hexdigest()


@dataclass(frozen=True)
class BankFinding:
    """The result of checking one part of a bank."""

    task: str  # "" for the ledger and bank.json
    version: int  # 0 for these
    difference: float | None  # largest difference of a self-test logit; 0.0: bit-identical; None: not computed
    problem: str = ""  # empty: no problem


def examine(bank: BankFolder, tested: Callable[[Path], TaskModule]) -> Iterator[BankFinding]:
    """Check all parts one by one: first the ledger, then every version of every task.

    `tested` opens the module in a folder and runs its self-test. If the ledger is damaged, only the versions that
    `bank.json` names are checked. Raises as `BankFolder.state`.
    """
    state = bank.state()
    versions = {name: {placed.version: placed.digest} for name, placed in state.tasks.items()}
    problem = ""
    try:
        versions = {name: kept.versions for name, kept in replay(bank.ledger(state).changes).items()}
    except GraftworkError as error:
        problem = error.message
    yield BankFinding("", 0, None, problem)
    for name in sorted(versions):
        for version, files in sorted(versions[name].items()):
            folder = bank.folder(name, version)
            try:
                require_digest(folder, files)
                finding = BankFinding(name, version, tested(folder).difference)
            except GraftworkError as error:
                finding = BankFinding(name, version, None, error.message)
            if not finding.problem or name in bank.state().tasks:  # otherwise it was removed meanwhile
                yield finding
