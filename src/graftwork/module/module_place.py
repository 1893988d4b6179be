"""Location of a task module: a folder of its own, or that of the run that trained it. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graftwork.errors import IncompatibleModule, StorageError, UnknownName

OWN_BACKBONE = "backbone"  # subfolder of a module that carries its backbone
CARRIED = f"hf:./{OWN_BACKBONE}"  # the backbone's name in the description of such a module


def module_folder(folder: Path) -> Path:
    """Return the module folder for `folder`, a module's or a run's. Raises `StorageError` if there is none."""
    place = _found(folder)
    if place is not None:
        return place
    raise StorageError(
        "not a task module",
        where=str(folder),
        expected="a folder with module.json in it",
        do="check the path; the module of a run is RUNS/ID/module, and of what was exported only onnx opens here",
    )


def has_module(folder: Path) -> bool:
    """Return whether `folder` is that of a task module, or of a run that trained one."""
    return _found(folder) is not None


def _found(folder: Path) -> Path | None:
    return next((place for place in (folder / "module", folder) if (place / "module.json").is_file()), None)


@contextmanager
def of_another_process(folder: Path) -> Iterator[None]:
    """Turn `UnknownName` for a backbone into an `IncompatibleModule` that says how to make the name known."""
    try:
        yield
    except UnknownName as error:
        raise IncompatibleModule(
            f"this process does not know the module's backbone: {error.what}",
            where=str(folder),
            expected=error.expected,
            do="if it was wrapped in Python, call gw.wrap_backbone(…, name=…) with the same network and name first; "
            "if a package added it, install the package",
        ) from error
