"""Leftovers of killed writers in a bank's folder: temporary files and folders, and versions that belong to no task."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Container
from pathlib import Path

from graftwork.bank.ledger import NAME
from graftwork.io.files import PART, storage_errors

TASKS = "tasks"  # folder of the task modules, by name and version
ON_ITS_WAY = re.compile(rf"\.{NAME.pattern}\.[a-z0-9_]{{8}}")  # a temporary folder of `tempfile.mkdtemp` for a task


def sweep(bank: Path, tasks: Container[str]) -> None:
    """Remove temporary files and folders, and the version folders of names that are not in `tasks`.

    Raises `StorageError`.
    """
    with storage_errors(bank):
        for path in bank.glob(f".bank.json.*{PART}"):
            path.unlink()
    with storage_errors(bank / TASKS):
        for folder in filter(_is_folder, (bank / TASKS).iterdir()):
            if ON_ITS_WAY.fullmatch(folder.name):
                shutil.rmtree(folder)
            elif not folder.name.startswith(".") and folder.name not in tasks:
                for version in filter(_is_folder, folder.iterdir()):
                    if version.name.isdecimal():
                        shutil.rmtree(version)
                with contextlib.suppress(OSError):  # it contains other files, which are kept
                    folder.rmdir()


def _is_folder(path: Path) -> bool:
    """Return whether a bank may have made this folder: it is no plain file and no link."""
    return path.is_dir() and not path.is_symlink()
