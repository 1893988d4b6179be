"""The modules named on the command line: a module's folder, a run's folder, or a bank and names of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.errors import ConfigError

if TYPE_CHECKING:
    from graftwork.bank.bank import Bank
    from graftwork.bank.exported_bank import ExportedBank
    from graftwork.module.task_module import TaskModule


def is_bank(module: str | Path) -> bool:
    """Return whether `module` is the folder of a bank, or of an exported one."""
    return any((Path(module) / name).is_file() for name in ("bank.json", "graftwork_bank.json"))


def task_and_file(module: str, given: Sequence[str], command: str) -> tuple[tuple[str, ...], str]:
    """Split the arguments `[TASK] FILE` after a module into the task (of a bank only, else empty) and the file.

    Raises `ConfigError` for more or fewer arguments.
    """
    in_bank = is_bank(module)
    if len(given) != 1 + in_bank:
        expected = f"graft {command} BANK TASK FILE" if in_bank else f"graft {command} MODULE FILE"
        raise ConfigError("wrong number of arguments", where=module, got=" ".join(given), expected=expected)
    return tuple(given[:-1]), given[-1]


def opened_bank(folder: str | Path, device: str) -> Bank | ExportedBank:
    """Open a bank, or an exported one."""
    from graftwork.module.exported_folder import EXPORTED_BANK, is_exported

    if is_exported(Path(folder), EXPORTED_BANK):
        from graftwork.bank.exported_bank import ExportedBank

        return ExportedBank.open(folder)
    from graftwork.bank.bank import Bank

    return Bank.open(folder, device=device)


def opened_modules(module: str | Path, others: Sequence[str], device: str) -> list[TaskModule]:
    """Open `module` and `others`. Of a bank, `others` are its tasks; those after the first may be modules' folders."""
    from graftwork.module.task_module import TaskModule

    if not is_bank(module):
        return [TaskModule.load(folder, device=device) for folder in (str(module), *others)]
    bank = opened_bank(module, device)
    return [
        TaskModule.load(name, device=device)
        if place and name not in bank.tasks and name not in bank.by_version
        else bank.module(name)
        for place, name in enumerate(others)
    ]
