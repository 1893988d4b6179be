"""Images and sounds inside tables, as the `Image` and `Audio` columns of the library `datasets` store them.

Their content is written to files below `media` in the cache, each named by its hash, where every other part reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from graftwork.core.example import Input
from graftwork.errors import DataError, clip
from graftwork.io.cache_folder import CacheFolder, cache_folder
from graftwork.io.files import storage_errors
from graftwork.units import several

AT_ONCE = 16  # rows in memory at a time where a column holds files
KEYS = frozenset({"bytes", "path"})
_SUFFIX = re.compile(r"\.[a-z0-9]{1,5}")
_FILE = re.compile(r"[0-9a-f]{64}(\.[a-z0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A cell of a table that is an image or a sound: its file's content, or, if that is None, its file's path."""

    content: bytes | None
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({len(self.content):,} bytes)".strip() if self.content is not None else self.path


def embedded_file(value: Any) -> EmbeddedFile | None:
    """Return a value as a file's content if it is bytes, or an object with `bytes` and `path`; else None."""
    if isinstance(value, bytes):
        return EmbeddedFile(value)
    if not (isinstance(value, Mapping) and value.keys() >= KEYS):
        return None
    content, path = value["bytes"], value["path"]
    if not (isinstance(content, bytes | None) and isinstance(path, str | None) and (content or path)):
        return None
    return EmbeddedFile(content or None, path or "")


def refuse_several(value: Any, name: str, where: str) -> None:
    """Raise `DataError` for a list of images or sounds, and for a decoded sound: a cell must be one file's content."""
    is_list = isinstance(value, list) and any(embedded_file(one) is not None for one in value)
    if is_list or (isinstance(value, Mapping) and "array" in value):
        raise DataError(
            f"{'several images or sounds' if is_list else 'a decoded sound'} in {name!r}",
            where=where,
            got=several(len(value), "file") if is_list else clip(f"an object with {', '.join(value)}"),
            expected="one image or sound in a row, as the bytes of its file",
            do="make a row for each of them" if is_list else "keep the file's bytes: cast the column to Audio",
        )


def text_cell(cell: Input | EmbeddedFile, where: str) -> Input:
    """Return a cell that is a text or a list of texts. Raises `DataError` if it is an image or a sound."""
    if isinstance(cell, EmbeddedFile):
        raise DataError(
            "the cell is an image or a sound, where a text is needed",
            where=where,
            got=clip(str(cell)),
            expected="a text",
            do="name its column: --image COLUMN or --sound COLUMN",
        )
    return cell


def media_folder(cache: str | Path | None = None) -> CacheFolder:
    """Return the folder of the files written below `cache`, or below the default cache."""
    return CacheFolder(cache_folder(cache).parent / "media", entry=_FILE)


def cached_file(content: bytes, path: str = "") -> Path:
    """Return a file with this content, written to the cache if it is not there; of `path` only the suffix is used.

    Raises `StorageError`.
    """
    suffix = PurePosixPath(path).suffix.lower()
    name = hashlib.sha256(content).hexdigest() + (suffix if _SUFFIX.fullmatch(suffix) else "")
    file = media_folder().root / name
    with storage_errors(file):
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_size == len(content):  # complete: its name is the hash of the content
                _touch(file)
                return file
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_name(f".{name[:64]}-{os.getpid()}.part")
        part.write_bytes(content)
        os.replace(part, file)
    return file


def _touch(file: Path) -> None:
    """Set the time of last use to now."""
    with contextlib.suppress(OSError):  # a read-only folder
        if file.stat().st_mtime < time.time() - 3600:
            os.utime(file)
