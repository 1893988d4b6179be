"""Takes away what a change of a bank left that was cut off."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Container
from pathlib import Path

from graftwork.bank.ledger import NAME
from graftwork.io.files import PART, storage_errors

TASKS = "tasks"  # the folder of the task modules, by name and version
ON_ITS_WAY = re.compile(rf"\.{NAME.pattern}\.[a-z0-9_]{{8}}")  # a folder of `tempfile.mkdtemp`, for a task


def sweep(bank: Path, tasks: Container[str]) -> None:
    """Remove what was on its way, and the folders of names that are no tasks, as far as they are a bank's own.

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
                with contextlib.suppress(OSError):  # something else is in it, which is not ours
                    folder.rmdir()


def _is_folder(path: Path) -> bool:
    """One that a bank may have made: neither a file that a desktop left, nor a link to another place."""
    return path.is_dir() and not path.is_symlink()
