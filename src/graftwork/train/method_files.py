"""Files that a method reads, such as word vectors: a run's id hashes their content, its receipt records their paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftwork.core.configured_methods import ConfiguredMethod, configured_from
from graftwork.core.method import CONTENT
from graftwork.core.part_settings import BY, chosen_settings
from graftwork.errors import StorageError
from graftwork.pretrained.open_backbone import backbone_folder
from graftwork.registry import methods


def lasting_files(config: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """Return the hyper-parameters of `config` that name a file, with absolute paths, in a wrapped method too.

    `known` is the same method's identity: `ConfiguredMethod.identity`.
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        if name == BY:
            (below, asked), (_, told) = (chosen_settings(words, methods) for words in (value, known[BY]))
            inside = lasting_files(asked, told)
            words = [f"{key}={setting}" for key, setting in (asked | inside).items()]
            found |= {BY: ":".join([below, *words])} if inside else {}
        elif value != known.get(name, value):
            found[name] = str((backbone_folder(value) or Path(value).expanduser()).absolute())
    return found


def method_again(known: Mapping[str, Any], recorded: Mapping[str, Any], files: Mapping[str, str]) -> ConfiguredMethod:
    """Rebuild the method with identity `known`, its files at the paths `files` of the receipt that `recorded` it.

    Raises `StorageError` where a file is missing, has changed, or its path is not recorded.
    """
    item = configured_from({name: files.get(name, value) for name, value in known.items()})
    here = item.identity
    for name, value in recorded.items():
        if name in files and here.get(name) != value:
            raise StorageError(
                "a file that the method reads has changed",
                where=files[name],
                got=str(here.get(name)),
                expected=str(value),
                do="restore it from a copy",
            )
        if name not in files and CONTENT in str(value):
            raise StorageError(
                "the receipt does not name the file that the method reads: it was made by an older version",
                where=name,
                expected=str(value),
                do="train it again",
            )
    return item
