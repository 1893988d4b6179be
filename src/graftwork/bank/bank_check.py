"""Whether everything in a bank is as it was: the ledger, every file of every version, every self-test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.bank.bank_folder import BankFolder
from graftwork.bank.ledger import replay
from graftwork.bank.task_version import require_digest
from graftwork.errors import GraftworkError

if TYPE_CHECKING:
    from graftwork.module.task_module import TaskModule


@dataclass(frozen=True)
class BankFinding:
    """One part of a bank, looked at."""

    task: str  # "" for the ledger and bank.json
    version: int  # 0 for these
    difference: float | None  # the largest of a logit of the self-test; 0.0: the same bits; None: not computed
    problem: str = ""  # empty: all is well


def examine(bank: BankFolder, tested: Callable[[Path], TaskModule]) -> Iterator[BankFinding]:
    """Look at everything, one by one: the ledger first, then every version of every task.

    `tested` opens the module in a folder and runs its self-test. Where the ledger is damaged, only the versions that
    `bank.json` names are known. Raises as `BankFolder.state`.
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
        for version, digest in sorted(versions[name].items()):
            finding = _examined(bank.folder(name, version), name, version, digest, tested)
            if not finding.problem or name in bank.state().tasks:  # else it was removed meanwhile
                yield finding


def _examined(folder: Path, name: str, version: int, digest: str, tested: Callable[[Path], TaskModule]) -> BankFinding:
    try:
        require_digest(folder, digest)
        return BankFinding(name, version, tested(folder).difference)
    except GraftworkError as error:
        return BankFinding(name, version, None, error.message)
