"""Consistency check of a bank: the ledger, every file of every version, every self-test."""

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
        for version, digest in sorted(versions[name].items()):
            folder = bank.folder(name, version)
            try:
                require_digest(folder, digest)
                finding = BankFinding(name, version, tested(folder).difference)
            except GraftworkError as error:
                finding = BankFinding(name, version, None, error.message)
            if not finding.problem or name in bank.state().tasks:  # otherwise it was removed meanwhile
                yield finding
