"""Location of a task module: a folder of its own, or that of the run that trained it. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from graftwork.errors import StorageError

OWN_BACKBONE = "backbone"  # subfolder of a module that carries its backbone
CARRIED = f"hf:./{OWN_BACKBONE}"  # the backbone's name in the description of such a module


def module_folder(folder: Path) -> Path:
    """Return the module folder for `folder`, a module's or a run's. Raises `StorageError` if there is none."""
    for place in (folder / "module", folder):
        if (place / "module.json").is_file():
            return place
    raise StorageError(
        "not a task module",
        where=str(folder),
        expected="a folder with module.json in it",
        do="check the path; the module of a run is RUNS/ID/module",
    )
