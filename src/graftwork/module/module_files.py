"""Reading of a task module's files, which are untrusted: regular files in its folder, of consistent sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.method import Method, Setting
from graftwork.errors import IncompatibleModule, StorageError, clip
from graftwork.io.files import load_and_digest, read_json, require_finite
from graftwork.io.json_limits import MODULE
from graftwork.io.plain_files import inside, require_plain_folder
from graftwork.module.module_place import CARRIED, OWN_BACKBONE
from graftwork.train.wrapper_method import innermost

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION, SELF_TEST, DELTA = "module.json", "selftest.json", "delta.safetensors"
LARGE = 256  # settings above this are checked, since they may be sizes that exceed the memory
LEAST_WIDTH = 64  # minimum number of weights per unit of a size


def read_description(folder: Path) -> dict[str, Any]:
    """Read module.json. Raises `StorageError` for an invalid file, or a link in the folder."""
    require_plain_folder(folder)
    return _object(folder / DESCRIPTION)


def read_self_test(folder: Path) -> dict[str, Any]:
    """Read selftest.json. Raises `StorageError`."""
    return _object(folder / SELF_TEST)


def named_backbone(folder: Path, name: str) -> str:
    """Return the name that opens a module's backbone: a path inside `folder` if the module carries it."""
    return f"hf:{folder / OWN_BACKBONE}" if name == CARRIED else name


def media_file(folder: Path, name: Any) -> Path:
    """Return the path of an image or a sound of the self-test, inside the folder. Raises `StorageError`."""
    return inside(folder, name, folder / SELF_TEST)


def read_delta(folder: Path, sha: str) -> dict[str, Tensor]:
    """Read the weights, all finite, with this sha256, into memory. Raises `StorageError` or `IncompatibleModule`."""
    delta, found = load_and_digest(folder / DELTA)
    if found != sha:
        raise IncompatibleModule(
            f"{DELTA} has changed since this module was saved",
            where=str(folder),
            got=f"sha256 {found[:16]}…",
            expected=f"sha256 {sha[:16]}…",
        )
    require_finite(delta, folder / DELTA)
    return delta


def require_fitting(method: Method, delta: Mapping[str, Tensor], setting: Setting, folder: Path) -> None:
    """Raise `IncompatibleModule` if the described method is larger than its stored weights.

    A size must be a dimension of some tensor with enough numbers, which bounds the memory needed to build the method.
    Every integer counts as a size unless its method says otherwise, so that an untrusted module can't exhaust memory.
    """
    from graftwork.train.loop import Attaches

    below: Any = innermost(method)
    built = isinstance(below, Attaches)
    sides = {side for tensor in delta.values() for side in tensor.shape}
    numbers = sum(tensor.numel() for tensor in delta.values())
    if setting.backbone is not None:
        outputs = setting.kind.outputs(setting.task)
        if outputs > LARGE and outputs * setting.backbone.card.width > numbers:
            raise _larger(folder, f"{outputs:,} outputs", numbers)
    for item in fields(below) if built else ():
        value, size = getattr(below, item.name), "sizeless" not in item.metadata
        if size and type(value) is int and value > LARGE and (value not in sides or value * LEAST_WIDTH > numbers):
            raise _larger(folder, f"{item.name} {value:,}", numbers)


def _larger(folder: Path, got: str, numbers: int) -> IncompatibleModule:
    return IncompatibleModule(
        "it describes a larger method than the weights belong to",
        where=str(folder / DESCRIPTION),
        got=got,
        expected=f"a method with at most {numbers:,} stored numbers",
    )


def _object(path: Path) -> dict[str, Any]:
    content = read_json(inside(path.parent, path.name), MODULE)
    if not isinstance(content, dict):
        raise StorageError("not a JSON object", where=str(path), got=clip(str(content)), expected="{…}")
    return content
