"""A version of a task in a bank: a copied module folder, identified by its digest, on the bank's backbone."""

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
BOARD = "leaderboard.json"  # leaderboard of the comparison behind a module, stored beside its files


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


def identity_after(
    backbone: Mapping[str, Any] | None, precision: str | None, seed: int, module: Mapping[str, Any], where: Path
) -> dict[str, Any]:
    """Return the bank's "backbone", "precision" and "backbone_seed" after adding this module: the first one sets them.

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
            "this module was trained on another backbone than the bank's, or in another precision",
            where=str(where),
            got=found,
            expected=bank,
            do="train it on the bank's backbone in the bank's precision, or add it to another bank",
        )
    if backbone is not None:
        return {"backbone": backbone, "precision": module["precision"], "backbone_seed": seed}
    return {"backbone": own, "precision": module["precision"], "backbone_seed": module["backbone_seed"]}
