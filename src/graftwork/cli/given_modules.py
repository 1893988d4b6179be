"""The modules named on the command line: a module's folder, a run's folder, or a bank and names of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graftwork.errors import ConfigError

if TYPE_CHECKING:
    from graftwork.module.task_module import TaskModule


def is_bank(module: str | Path) -> bool:
    """Return whether `module` is the folder of a bank."""
    return (Path(module) / "bank.json").is_file()


def task_and_file(module: str, given: Sequence[str], command: str) -> tuple[tuple[str, ...], str]:
    """Split the arguments `[TASK] FILE` after a module into the task (of a bank only, else empty) and the file.

    Raises `ConfigError` for more or fewer arguments.
    """
    in_bank = is_bank(module)
    if len(given) != 1 + in_bank:
        expected = f"graft {command} BANK TASK FILE" if in_bank else f"graft {command} MODULE FILE"
        raise ConfigError("wrong number of arguments", where=module, got=" ".join(given), expected=expected)
    return tuple(given[:-1]), given[-1]


def opened_modules(module: str | Path, others: Sequence[str], device: str) -> list[TaskModule]:
    """Open `module` and `others`. Of a bank, `others` are its tasks; those after the first may be modules' folders."""
    from graftwork.module.task_module import TaskModule

    if not is_bank(module):
        return [TaskModule.load(folder, device=device) for folder in (str(module), *others)]
    from graftwork.bank.bank import Bank

    bank = Bank.open(module, device=device)
    return [
        TaskModule.load(name, device=device) if place and name not in bank.tasks else bank.module(name)
        for place, name in enumerate(others)
    ]
