"""The files of a task module, which may come from anywhere: plain ones inside its folder, whose sizes fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftwork.core.method import Method, Setting
from graftwork.errors import IncompatibleModule, StorageError, clip
from graftwork.files import read_json, require_finite, safe_load
from graftwork.limited import MODULE
from graftwork.plain_files import inside, require_plain_folder
from graftwork.train.loop import Attaches, build_model

DESCRIPTION, SELF_TEST, DELTA = "module.json", "selftest.json", "delta.safetensors"
LARGE = 256  # a setting above this may be a size that no memory holds


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


def require_fitting(
    method: Method, setting: Setting, delta: Mapping[str, Tensor], facts: Mapping[str, Any], folder: Path
) -> None:
    """Raises `IncompatibleModule` where the method is described with sizes that its weights do not have.

    Only what may be large is looked at; it is built without memory for its numbers.
    """
    named: Any = method
    sizes = {item.name: getattr(method, item.name) for item in fields(named)}
    large = {name: value for name, value in sizes.items() if isinstance(value, int | float) and not abs(value) <= LARGE}
    if not large or setting.backbone is None or not isinstance(method, Attaches):
        return
    with torch.device("meta"):
        wanted = {name: part.shape for name, part in build_model(method, setting, int(facts["towers"])).delta().items()}
    odd = sorted(name for name in wanted if name not in delta or delta[name].shape != wanted[name])
    if odd:
        there = tuple(delta[odd[0]].shape) if odd[0] in delta else "nothing"
        raise IncompatibleModule(
            "module.json describes another network than its weights are of",
            where=str(folder / DESCRIPTION),
            got=f"{', '.join(f'{name} {value}' for name, value in large.items())}: {odd[0]} {tuple(wanted[odd[0]])}",
            expected=f"{odd[0]} {there}",
        )


def _object(path: Path) -> dict[str, Any]:
    content = read_json(inside(path.parent, path.name), MODULE)
    if not isinstance(content, dict):
        raise StorageError("not an object", where=str(path), got=clip(str(content)))
    return content
