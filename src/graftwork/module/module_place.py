"""Where a task module lies: in a folder of its own, or in that of the run that trained it."""

from __future__ import annotations

from pathlib import Path

from graftwork.errors import StorageError


def module_folder(folder: Path) -> Path:
    """The module in `folder`, which is one or a run's. Raises `StorageError` when there is none."""
    for place in (folder / "module", folder):
        if (place / "module.json").is_file():
            return place
    raise StorageError(
        "not a task module",
        where=str(folder),
        expected="a folder with module.json in it",
        do="check the path; the one of a run is RUNS/ID/module",
    )
