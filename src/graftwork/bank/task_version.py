"""A version of a task in a bank: a module folder copied whole, known by its digest, on the bank's own backbone."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.errors import IncompatibleModule, StorageError
from graftwork.io.files import digest, file_digest, read_json, storage_errors, writing
from graftwork.io.json_limits import MODULE
from graftwork.io.plain_files import require_plain_folder

DESCRIBED = {"task", "roles", "method", "precision", "backbone", "backbone_seed", "delta_sha256", "scores"}
BOARD = "leaderboard.json"  # of the comparison behind a module, beside its own files


def copy_module(module: Path, folder: Path, board: Path | None = None) -> None:
    """The files of `module`, and the leaderboard of `board` (the file or its folder), on disk before this returns."""
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
    """Of every file of a version. Raises `StorageError`."""
    with storage_errors(folder):
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def digest_of(folder: Path) -> str:
    """sha256 over the names and contents of every file in `folder`. Raises `StorageError`."""
    with storage_errors(folder):
        require_plain_folder(folder)
        files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return digest([[path.relative_to(folder).as_posix(), file_digest(path)] for path in files])


def require_description(description: Any, where: Path) -> None:
    """Raises `IncompatibleModule` unless it is what a bank reads of a `module.json`."""
    if not isinstance(description, dict) or not description.keys() >= DESCRIBED:
        raise IncompatibleModule(
            "module.json is damaged", where=str(where), expected=f"an object with {', '.join(sorted(DESCRIBED))}"
        )


def require_there(folder: Path) -> None:
    """Raises `StorageError` when there is no version in `folder`."""
    if not (folder / "module.json").is_file():
        raise StorageError("this version is not there any more", where=str(folder), do="add the module again")


def require_vacant(folder: Path) -> None:
    """Raises `StorageError` where something stands in the place of a version that is to come."""
    if folder.exists():
        raise StorageError(
            "a folder stands where this version would",
            where=str(folder),
            expected="nothing there: the ledger knows of no such version",
            do="move it away; where the disk takes two names for one that differ in capitals, choose another name",
        )


def require_digest(folder: Path, expected: str) -> None:
    """Raises `IncompatibleModule` when a file of a version was changed, added or taken away; `StorageError`."""
    require_there(folder)
    found = digest_of(folder)
    if found != expected:
        raise IncompatibleModule(
            "a file of this task is not as it was added",
            where=str(folder),
            got=f"digest {found[:16]}…",
            expected=f"digest {expected[:16]}…",
            do="put the files back, add the module again, or graft bank rollback to an older version",
        )


def is_intact(folder: Path, digest: str) -> bool:
    """Whether `require_digest` finds nothing."""
    try:
        require_digest(folder, digest)
    except (IncompatibleModule, StorageError):
        return False
    return True


def identity_after(
    backbone: Mapping[str, Any] | None, precision: str | None, seed: int, module: Mapping[str, Any], where: Path
) -> dict[str, Any]:
    """The bank's "backbone", "precision" and "backbone_seed" once this module is in it: the first one decides them.

    A module without a backbone fits any bank. Raises `IncompatibleModule` with both identities.
    """
    own = module["backbone"]
    if own is None:
        return {"backbone": backbone, "precision": precision, "backbone_seed": seed}
    known = backbone or own
    bank = f"{known['id']}, revision {known['revision'][:16]}, in {precision or module['precision']}"
    found = f"{own['id']}, revision {own['revision'][:16]}, in {module['precision']}"
    if own["revision"] != known["revision"] or precision not in (None, module["precision"]):
        raise IncompatibleModule(
            "this module belongs to another backbone than the bank's",
            where=str(where),
            got=found,
            expected=bank,
            do="train it on the bank's backbone in the bank's precision, or add it to another bank",
        )
    if backbone is not None:
        return {"backbone": backbone, "precision": module["precision"], "backbone_seed": seed}
    return {"backbone": own, "precision": module["precision"], "backbone_seed": module["backbone_seed"]}
