"""The files of a task module, which may come from anywhere: plain ones inside its folder, whose sizes fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftwork.core.method import Method, Setting
from graftwork.errors import IncompatibleModule, StorageError, clip
from graftwork.io.files import read_json, require_finite, safe_load
from graftwork.io.json_limits import MODULE
from graftwork.io.plain_files import inside, require_plain_folder
from graftwork.train.wrapper_method import innermost

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION, SELF_TEST, DELTA = "module.json", "selftest.json", "delta.safetensors"
LARGE = 256  # a setting above this may be a size that no memory holds
LEAST_WIDTH = 64  # numbers at least that a network's maps have for each unit of a size


def read_description(folder: Path) -> dict[str, Any]:
    """What module.json says. Raises `StorageError` for a file that breaks a rule, or a link in the folder."""
    require_plain_folder(folder)
    return _object(folder / DESCRIPTION)


def read_self_test(folder: Path) -> dict[str, Any]:
    """What selftest.json says. Raises `StorageError`."""
    return _object(folder / SELF_TEST)


def media_file(folder: Path, name: Any) -> Path:
    """An image or a sound of the self-test, which stands in the folder. Raises `StorageError`."""
    return inside(folder, name, folder / SELF_TEST)


def read_delta(folder: Path) -> dict[str, Tensor]:
    """The weights, all finite, whatever becomes of the file. Raises `StorageError` or `IncompatibleModule`."""
    delta = safe_load(folder / DELTA, mapped=False)
    require_finite(delta, folder / DELTA)
    return delta


def require_fitting(method: Method, delta: Mapping[str, Tensor], setting: Setting, folder: Path) -> None:
    """Raises `IncompatibleModule` where what is built on a network is described as larger than its weights are.

    A size is a side of some tensor, and of many numbers: what is built by it takes no more memory than that allows. A
    whole number is one unless its method says otherwise, so that no method lets a stranger's module take all memory.
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
        "it describes a larger method than its weights are of",
        where=str(folder / DESCRIPTION),
        got=got,
        expected=f"one that {numbers:,} stored numbers are enough for",
    )


def _object(path: Path) -> dict[str, Any]:
    content = read_json(inside(path.parent, path.name), MODULE)
    if not isinstance(content, dict):
        raise StorageError("not an object", where=str(path), got=clip(str(content)), expected="{…}")
    return content
