"""Adding a newly made task module to a bank, shared by several commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.config import DEFAULT_BACKBONE
from graftwork.core.task import Task
from graftwork.errors import ConfigError, IncompatibleModule
from graftwork.io.files import read_json, require_writable
from graftwork.units import show

if TYPE_CHECKING:
    from graftwork.bank.bank import Bank
    from graftwork.bank.task_version import BankState


@dataclass(frozen=True)
class BankAddition:
    """The result of adding a module, to be printed."""

    lines: list[str]
    as_json: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlaceInBank:
    """The bank and task name for a module that will be trained, and the backbone and precision to train it with."""

    bank: Path | None  # None: do not add to a bank
    task: str
    backbone: str
    precision: str

    def add(self, module: Path) -> BankAddition:
        """Add the module, creating the bank if it does not exist. Raises as `Bank.add`; the module's folder is kept."""
        from graftwork.module.inputs import asking

        if self.bank is None:
            return BankAddition([f"Use it:      {asking(read_json(module / 'module.json')['roles'], module)}"])
        from graftwork.bank.bank import Bank

        known = (self.bank / "bank.json").is_file()
        return add_to_bank(Bank.open(self.bank) if known else Bank.create(self.bank), module, self.task)


def place_in_bank(
    bank: str | None, called: str | None, task: Task, backbone: str | None, precision: str, method: str | None = None
) -> PlaceInBank:
    """Resolve `--bank` and `--task`. If the bank has a backbone, it and its precision are the defaults.

    With `method`, the one that the module will be trained by, whether the bank takes modules that write is known too.

    Raises, before anything is trained, `ConfigError` for a bad name and for a bank among the task's class folders,
    `IncompatibleModule` for another backbone or precision than the bank's, and `StorageError` for a bank that can't be
    read or written, or one whose backbone is not on this machine and was not given by name.
    """
    if bank is None:
        if called is not None:
            raise ConfigError("--task needs --bank", got=f"--task {called}", do="name the bank: --bank DIR")
        return PlaceInBank(None, "", backbone or DEFAULT_BACKBONE, precision)
    from graftwork.bank.bank_folder import BankFolder, require_name
    from graftwork.bank.task_version import BankState
    from graftwork.data.splits.split_folder import require_outside
    from graftwork.pretrained.open_backbone import require_kept

    name, folder = called or task.name, Path(bank)
    require_name(name)
    require_outside(task, [folder])
    known = (folder / "bank.json").is_file()
    require_writable(folder if known else folder.absolute().parent)
    state = BankFolder(folder).state() if known else BankState()
    own = state.backbone["id"] if state.backbone else None
    if state.precision is not None and precision not in ("auto", state.precision):
        raise _other(
            "the bank is in another precision",
            folder,
            f"--precision {precision}",
            f"{state.precision}, as the bank's tasks are",
        )
    if own is not None and backbone not in (None, own):
        _require_same(folder, str(backbone), state)
    if own is not None and backbone is None:
        require_kept(own)  # the user did not give it by name
    if own is not None and method is not None:
        _require_writing_bank(folder, task, method, state)
    own_precision = state.precision if precision == "auto" and state.precision else precision
    return PlaceInBank(folder, name, backbone or own or DEFAULT_BACKBONE, own_precision)


def add_to_bank(bank: Bank, module: Path, task: str | None, board: Path | None = None) -> BankAddition:
    """Add a module to a bank and return the lines to print."""
    from graftwork.module.inputs import asking

    before = bank.tasks
    entry = bank.add(module, task, board=board)
    old = before.get(entry.name)
    again = old is not None and old.digest == entry.digest
    size = "unchanged" if again else show(entry.bytes, "bytes")
    lines = [f"In the bank: {entry.name}, version {entry.version}, in {bank.path}, {size}"]
    if old is not None and not again:
        lines.append(f"Go back:     graft bank rollback {bank.path} {entry.name}")
    lines.append(f"Use it:      {asking(entry.roles, bank.path, entry.name)}")
    return BankAddition(
        lines, {"bank": {"path": str(bank.path), "task": entry.name, "version": entry.version, "new": not again}}
    )


def asking_in_bank(bank: str, task: str) -> str:
    """Return the command that predicts with this task. Raises `UnknownName` for an unknown task, and `StorageError`."""
    from graftwork.bank.bank_folder import BankFolder
    from graftwork.module.exported_folder import EXPORTED_BANK, is_exported
    from graftwork.module.inputs import asking

    if is_exported(Path(bank), EXPORTED_BANK):
        from graftwork.bank.exported_bank import ExportedBank

        return asking(ExportedBank.open(bank).module(task).roles, bank, task)
    return asking(BankFolder(Path(bank)).entry(task).roles, bank, task)


def _require_same(folder: Path, backbone: str, state: BankState) -> None:
    """Raise `IncompatibleModule` unless `backbone` has the same revision as the bank's backbone."""
    from graftwork.pretrained.open_backbone import open_backbone

    assert state.backbone is not None
    card = open_backbone(backbone, precision="fp32", writes=bool(state.backbone.get("writes"))).card
    if card.revision != state.backbone["revision"]:
        own = state.backbone
        found, expected = (
            f"{name}, revision {it[:16]}" for name, it in ((card.id, card.revision), (own["id"], own["revision"]))
        )
        raise _other("the bank is on another backbone", folder, found, expected)


def _require_writing_bank(folder: Path, task: Task, method: str, state: BankState) -> None:
    """Raise `IncompatibleModule` if the task writes texts, and the bank uses its backbone's encoder alone."""
    from graftwork.bank.task_version import WRITER_FIRST, told_backbone
    from graftwork.core.configured_methods import parse_method
    from graftwork.core.kind import WritesTexts
    from graftwork.pretrained.open_backbone import open_backbone
    from graftwork.registry import kinds

    own = state.backbone or {}
    if own.get("writes") or not isinstance(kinds.get(task.kind), WritesTexts):
        return
    if parse_method(method).method.uses_backbone:
        card = open_backbone(own["id"], precision="fp32", writes=True).card
        if card.writes:
            raise IncompatibleModule(
                "the bank's tasks only read with this backbone",
                where=str(folder),
                got=f"a task of kind {task.kind}",
                expected=f"tasks that answer without texts, on {told_backbone(own)}",
                do=WRITER_FIRST,
            )


def _other(what: str, folder: Path, got: str, expected: str) -> IncompatibleModule:
    return IncompatibleModule(
        what,
        where=str(folder),
        got=got,
        expected=expected,
        do="omit the option to use that of the bank, or name another bank",
    )
