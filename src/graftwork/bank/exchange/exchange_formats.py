"""The exchange formats by name: detection, reading and writing of folders."""

from __future__ import annotations

from pathlib import Path

from graftwork.bank.exchange import adapters_bottleneck, peft_lora
from graftwork.bank.exchange.imported_module import ForeignModule
from graftwork.core.backbone import Backbone
from graftwork.errors import ConfigError, IncompatibleModule, StorageError, UnknownName
from graftwork.io.new_folder import new_folder
from graftwork.io.plain_files import require_plain_folder
from graftwork.module.task_module import TaskModule
from graftwork.pretrained.folder_file import model_file
from graftwork.pretrained.model_json import checked_json

CONFIG = "adapter_config.json"


FORMATS = {"peft": peft_lora, "adapters": adapters_bottleneck}  # each has `is_ours`, `read` and `write`


def read_folder(folder: Path, backbone: Backbone) -> ForeignModule:
    """Read a folder that another library saved. Raises `StorageError`, `ConfigError` or `IncompatibleModule`."""
    if not (folder / CONFIG).is_file():
        raise StorageError(
            "not a folder that peft or adapters saved", where=str(folder), expected=f"a folder with {CONFIG}"
        )
    _require_plain(folder.absolute())
    config = checked_json(folder / CONFIG)
    for known in FORMATS.values():
        if known.is_ours(config):
            try:
                found: ForeignModule = known.read(folder, backbone)
                return found
            except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError) as error:
                raise IncompatibleModule(
                    "the folder is damaged",
                    where=str(folder),
                    got=f"{type(error).__name__}: {error}",
                    do="save or export it again",
                ) from error
    raise IncompatibleModule(
        "not written by peft or adapters",
        where=str(folder / CONFIG),
        expected="the key peft_type, or model_type and config",
    )


def _require_plain(folder: Path) -> None:
    """Raise `StorageError` for a link in the folder, unless it is a link of the hub's cache to a file of its own."""
    if folder.parent.name == "snapshots":
        for path in folder.iterdir():
            model_file(folder, path.name)
    else:
        require_plain_folder(folder)


def write_folder(module: TaskModule, folder: Path, format: str) -> None:
    """Write a task for another library, atomically, to a new or empty folder.

    Raises `ConfigError` for a task that the format can't hold, `StorageError`.
    """
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    if module.backbone is not None and module.backbone.card.modality != "text":
        raise ConfigError(
            f"a task on {module.backbone.card.modality}s can't be exported",
            where=str(module.folder),
            expected="a task on texts",
        )
    with new_folder(folder) as made:
        FORMATS[format].write(module, made)
