"""The state of a bank, and the versions of its tasks: copied module folders, each identified by its digest."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graftwork.bank.ledger import START
from graftwork.errors import GraftworkError, IncompatibleModule, StorageError
from graftwork.io.files import digest, file_digest, read_json, storage_errors, writing
from graftwork.io.json_limits import MODULE
from graftwork.io.plain_files import require_plain_folder
from graftwork.module.module_place import CARRIED, OWN_BACKBONE

DESCRIBED = {"task", "roles", "method", "precision", "backbone", "backbone_seed", "delta_sha256", "scores"}
WRITER_FIRST = (
    "create another bank and add this task first: it then also takes tasks that use only the network's encoder"
)
BOARD = "leaderboard.json"  # leaderboard of the comparison behind a module, stored beside its files


@dataclass(frozen=True)
class PlacedTask:
    """The entry of a task in `bank.json`."""

    version: int
    digest: str  # `digest_of` the version's folder
    bytes: int
    added: str  # ISO 8601, UTC: when this version was added


@dataclass(frozen=True)
class BankState:
    """The content of `bank.json`, read at once: a complete, consistent bank."""

    backbone: Mapping[str, Any] | None = None  # a `BackboneCard` as JSON; None until the first task brings one
    precision: str | None = None  # "bf16" or "fp32"; None until the first task brings one
    backbone_seed: int = 0
    head: str = START  # hash of the ledger's last line
    tasks: Mapping[str, PlacedTask] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskEntry:
    """A version of a task in a bank, with the content of its files."""

    name: str
    version: int
    digest: str
    bytes: int
    added: str
    folder: Path
    description: Mapping[str, Any]  # `module.json` without its facts, which may hold a vocabulary
    has_board: bool

    @property
    def roles(self) -> tuple[str, ...]:
        """The inputs that the task takes."""
        return tuple(self.description["roles"])

    def as_json(self) -> dict[str, Any]:
        """Return the entry of this version in a list of tasks, as JSON."""
        described = self.description
        return {
            "name": self.name,
            "version": self.version,
            "kind": described["task"]["kind"],
            "labels": list(described["task"]["labels"]),
            "method": described["method"],
            "scores": described["scores"],
            "positive": described["task"].get("positive"),
            "trained_parameters": described.get("trained_parameters"),
            "bytes": self.bytes,
            "has_board": self.has_board,
        }


@dataclass(frozen=True)
class BankChanges:
    """Tasks that changed in a bank since it was last read."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # task -> error message; its old version keeps answering


@dataclass(frozen=True)
class AddedModule:
    """The result of adding a module."""

    name: str
    version: int
    new: bool  # False: it already was the current version


@dataclass(frozen=True)
class Failure:
    """A version that could not be opened, and the error message."""

    digest: str
    message: str

    @classmethod
    def of(cls, digest: str, error: Exception) -> Failure:
        """Keep the message of any error."""
        return cls(digest, error.message if isinstance(error, GraftworkError) else f"{type(error).__name__}: {error}")


def copy_module(module: Path, folder: Path, board: Path | None = None) -> None:
    """Copy the files of `module` and the leaderboard of `board` (file or folder) to `folder`, synced to disk."""
    with storage_errors(module):
        require_plain_folder(module)
        files = sorted(path for path in module.iterdir() if path.is_file() and not path.name.startswith("."))
    for path in files:
        _copy(path, folder / path.name)
    if board is not None:
        path = board / BOARD if board.is_dir() else board
        content = read_json(path, MODULE)
        if not isinstance(content, dict) or "rows" not in content:
            raise StorageError("not the leaderboard of a comparison", where=str(path), expected=f"DIR with {BOARD}")
        _copy(path, folder / BOARD)


def _copy(path: Path, to: Path) -> None:
    with storage_errors(path), path.open("rb") as source, writing(to) as stream:
        shutil.copyfileobj(source, stream)


def bytes_of(folder: Path) -> int:
    """Return the total size of the files of a version, in bytes. Raises `StorageError`."""
    with storage_errors(folder):
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def digest_of(folder: Path) -> str:
    """Return a sha256 over the names and contents of every file in `folder`. Raises `StorageError`."""
    with storage_errors(folder):
        require_plain_folder(folder)
        files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return digest([[path.relative_to(folder).as_posix(), file_digest(path)] for path in files])


def require_description(description: Any, where: Path) -> None:
    """Raise `IncompatibleModule` unless `description` has the keys of `module.json` that a bank reads."""
    if not isinstance(description, dict) or not description.keys() >= DESCRIBED:
        raise IncompatibleModule(
            "module.json is damaged", where=str(where), expected=f"an object with {', '.join(sorted(DESCRIBED))}"
        )


def require_there(folder: Path) -> None:
    """Raise `StorageError` when there is no version in `folder`."""
    if not (folder / "module.json").is_file():
        raise StorageError("the folder of this version is missing", where=str(folder), do="add the module again")


def require_vacant(folder: Path) -> None:
    """Raise `StorageError` when the path of a new version exists already."""
    if folder.exists():
        raise StorageError(
            "the folder of this version exists already",
            where=str(folder),
            expected="no such folder: the ledger has no such version",
            do="move it to another place; or choose another name, where the disk ignores the case of letters",
        )


def require_digest(folder: Path, expected: str) -> None:
    """Raise `IncompatibleModule` when a file of a version was changed, added or removed; `StorageError`."""
    require_there(folder)
    found = digest_of(folder)
    if found != expected:
        raise IncompatibleModule(
            "a file of this task has changed since it was added",
            where=str(folder),
            got=f"digest {found[:16]}…",
            expected=f"digest {expected[:16]}…",
            do="restore the files, add the module again, or graft bank rollback to an older version",
        )


def is_intact(folder: Path, digest: str) -> bool:
    """Return whether the folder passes `require_digest`."""
    try:
        require_digest(folder, digest)
    except (IncompatibleModule, StorageError):
        return False
    return True


def told_backbone(card: Mapping[str, Any]) -> str:
    """Name a backbone, given by its card as JSON, in a message."""
    return f"{card['id']}{', which writes texts' if card.get('writes') else ''}, revision {card['revision'][:16]}"


def state_with(module: Mapping[str, Any], state: BankState, where: Path) -> BankState:
    """Return the state of a bank that takes this module (its `module.json`): the first one sets its backbone.

    A module without a backbone fits any bank. One on an encoder may fit a bank whose backbone writes: opening it on
    that backbone tells. Raises `IncompatibleModule` with both backbones.
    """
    own = module["backbone"]
    if own is None:
        return state
    if state.backbone is None and own["id"] == CARRIED:
        named = shlex.quote(f"hf:{where / OWN_BACKBONE}")
        raise IncompatibleModule(
            "this module carries its own backbone, and a bank's tasks share one",
            where=str(where),
            do=f"serve it by itself, or make a bank on it: graft bank create DIR --backbone {named}",
        )
    known, precision = state.backbone or own, state.precision or module["precision"]
    same = own["revision"] == known["revision"] or (known.get("writes") and not own.get("writes"))
    if not same or module["precision"] != precision:
        at_home = "train it on the bank's backbone in the bank's precision, or add it to another bank"
        raise IncompatibleModule(
            "this module was trained on another backbone than the bank's, or in another precision",
            where=str(where),
            got=f"{told_backbone(own)}, in {module['precision']}",
            expected=f"{told_backbone(known)}, in {precision}",
            do=WRITER_FIRST if own.get("writes") and not known.get("writes") else at_home,
        )
    seed = module["backbone_seed"] if state.backbone is None else state.backbone_seed
    return replace(state, backbone=known, precision=precision, backbone_seed=seed)
