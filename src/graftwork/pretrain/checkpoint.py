"""A checkpoint: all that the next step depends on, in one file of tensors named by one small JSON file written last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.meter import Phase
from graftwork.errors import IncompatibleModule
from graftwork.files import file_digest, read_json, safe_load, write_json, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
ABOUT = "checkpoint.json"


@dataclass
class Progress:
    """How far a pre-training has come, beside its tensors."""

    step: int = 0  # steps done
    steps: int = 0  # of how many
    log_bytes: int = 0  # of log.jsonl, written by then
    fit: Phase = field(default_factory=Phase)  # what it took so far, all attempts together
    attempts: int = 1
    facts: dict[str, Any] = field(default_factory=dict)  # JSON that later parts of the receipt need


def write_checkpoint(folder: Path, run: str, progress: Progress, tensors: Mapping[str, Tensor]) -> None:
    """Replace the checkpoint in `folder`: at every moment the old one or the new one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"step-{progress.step}.safetensors"
    write_tensors(folder / name, dict(tensors))
    about = {"format": FORMAT, "run": run, "tensors": name, "sha256": file_digest(folder / name)}
    write_json(folder / ABOUT, about | asdict(progress))
    for other in folder.glob("*.safetensors"):
        if other.name != name:
            other.unlink()


def read_checkpoint(folder: Path, run: str) -> tuple[Progress, dict[str, Tensor]] | None:
    """The checkpoint of `run` in `folder`; None where there is none.

    Raises `IncompatibleModule` for one of another configuration or with changed tensors, `StorageError` for a torn one.
    """
    if not (folder / ABOUT).is_file():
        return None
    about = read_json(folder / ABOUT)
    if about.get("format") != FORMAT or about.get("run") != run:
        raise IncompatibleModule(
            "the checkpoint is of another configuration",
            where=str(folder),
            got=f"run {about.get('run')}, format {about.get('format')}",
            expected=f"run {run}, format {FORMAT}",
            do="give the flags that it was begun with, or move the folder away to begin anew",
        )
    path = folder / about["tensors"]
    if file_digest(path) != about["sha256"]:
        raise IncompatibleModule(
            "the checkpoint's tensors are not those that it names",
            where=str(path),
            expected=f"sha256 {about['sha256']}",
            do="remove the folder to begin anew",
        )
    names = ("step", "steps", "log_bytes", "attempts", "facts")
    progress = Progress(**{name: about[name] for name in names}, fit=Phase(**about["fit"]))
    return progress, safe_load(path, mapped=False)
