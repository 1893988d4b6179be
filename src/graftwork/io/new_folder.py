"""A new folder that appears whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graftwork.errors import StorageError
from graftwork.io.files import storage_errors, sync_folder


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to the new or empty `folder` at the end, or removed on an error.

    Raises `StorageError` for a folder with anything in it.
    """
    with storage_errors(folder):
        taken = folder.exists() and any(folder.iterdir())
    if taken:
        raise StorageError("the folder is not empty", where=str(folder), do="choose another path")
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield made
        with storage_errors(folder):
            made.chmod(0o755)
            made.rename(folder)
            sync_folder(folder.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)
