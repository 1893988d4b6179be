"""Cache entries of corpora: their token ids and the vocabularies learned from them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from graftwork.io.cache_folder import CacheEntry, cache_folder
from graftwork.io.files import storage_errors

KEY = re.compile(r"[0-9a-f]{64}")
PART = re.compile(r"\.[0-9a-f]{64}\..*")  # a temporary folder, being written or left over by a killed process
PART_SECONDS = 86_400.0  # age from which a temporary folder counts as left over


def corpora_folder(cache: str | Path | None = None) -> Path:
    """Return the folder of the corpus entries below `cache`, or below the default cache."""
    return cache_folder(cache).parent / "corpora"


def cache_entries(root: Path) -> list[CacheEntry]:
    """List the cache entries, least recently used first. Raises `StorageError`."""
    with storage_errors(root):
        found = [one for path in root.glob("*/*") if KEY.fullmatch(path.name) and (one := _kept(path))]
    return sorted(found, key=lambda one: (one.used, one.path.name))


def clear(root: Path, unused_seconds: float = 0.0) -> list[CacheEntry]:
    """Remove and return the entries unused for that long; existing memory maps stay valid. Raises `StorageError`.

    Processes may clear at the same time: each entry is removed, and returned, by one of them.
    """
    latest = time.time() - unused_seconds
    with storage_errors(root):
        removed = [one for one in cache_entries(root) if one.used <= latest and _remove(one.path)]
        for folder in root.glob("*/"):
            sweep(folder)
    return removed


def _remove(path: Path) -> bool:
    """Remove an entry; return False if it is gone. It is renamed first, so that no process finds half an entry."""
    part = path.with_name(f".{path.name}.{os.getpid()}")  # `sweep` removes it if this process is killed
    try:
        path.rename(part)
    except FileNotFoundError:
        return False
    shutil.rmtree(part, ignore_errors=True)
    return True


def sweep(folder: Path) -> None:
    """Remove temporary folders left over by killed processes. Raises `OSError`."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if PART.fullmatch(path.name) and _written(path) < time.time() - PART_SECONDS:
                shutil.rmtree(path)


def _written(path: Path) -> float:
    """Return the latest modification time of the folder and its files: the folder's own does not cover its files."""
    return max(one.stat().st_mtime for one in (path, *path.iterdir()))


def _kept(path: Path) -> CacheEntry | None:
    """Describe an entry; None if another process removes it meanwhile."""
    try:
        files = [file.stat() for file in path.iterdir()]
    except FileNotFoundError:
        return None
    return CacheEntry(path, sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0))
