"""Paths of the files in a model's folder, checked against links that lead out of it."""

from __future__ import annotations

from pathlib import Path

from graftwork.io.files import storage_errors
from graftwork.io.plain_files import inside


def model_file(folder: Path, name: str, told_by: Path | None = None) -> Path:
    """Return the path of `name` in a model's folder; the file need not exist. `told_by`, for messages, names it.

    Raises `StorageError` for a link out of the folder, except the links of the hub's cache to its own blobs.
    """
    path = folder / name
    if path.is_symlink() and folder.parent.name == "snapshots":
        kept = (folder.parent.parent / "blobs").resolve()
        if path.resolve().is_relative_to(kept):
            return path
    with storage_errors(path):
        try:
            return inside(folder, name, told_by)
        except FileNotFoundError:
            return path
