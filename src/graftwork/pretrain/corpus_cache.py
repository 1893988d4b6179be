"""What is kept of corpora in the cache: their tokens and the vocabularies learned from them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from graftwork.io.cache_folder import cache_folder
from graftwork.io.files import storage_errors

KEY = re.compile(r"[0-9a-f]{64}")
PART = re.compile(r"\.[0-9a-f]{64}\..*")  # a folder on its way; what a killed process leaves
PART_SECONDS = 86_400.0  # older ones belong to nobody


@dataclass(frozen=True)
class CachedCorpus:
    """One folder of the cache: the tokens of a corpus, or a vocabulary."""

    path: Path
    bytes: int
    used: float  # seconds since the epoch: when it was last read or written


def corpora_folder(cache: str | Path | None = None) -> Path:
    """Where they are below `cache`, or below the usual cache."""
    return cache_folder(cache).parent / "corpora"


def touch(file: Path) -> None:
    """Note that the folder of this file was used now."""
    with contextlib.suppress(OSError):  # a cache that is only to be read
        os.utime(file)


def kept(root: Path) -> list[CachedCorpus]:
    """Least recently used first. Raises `StorageError`."""
    with storage_errors(root):
        found = [_kept(path) for path in root.glob("*/*") if KEY.fullmatch(path.name)]
    return sorted(found, key=lambda one: (one.used, one.path.name))


def clear(root: Path, unused_seconds: float = 0.0) -> list[CachedCorpus]:
    """Remove what was not used for that long; what was removed. Who has it mapped keeps it. Raises `StorageError`."""
    latest = time.time() - unused_seconds
    removed = [one for one in kept(root) if one.used <= latest]
    with storage_errors(root):
        for one in removed:
            shutil.rmtree(one.path)
        for folder in root.glob("*"):
            sweep(folder)
    return removed


def sweep(folder: Path) -> None:
    """Remove what killed processes left. Raises `OSError`."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if PART.fullmatch(path.name) and _written(path) < time.time() - PART_SECONDS:
                shutil.rmtree(path)


def _written(path: Path) -> float:
    """When it was last written: a folder does not tell what is added to its files."""
    return max(one.stat().st_mtime for one in (path, *path.iterdir()))


def _kept(path: Path) -> CachedCorpus:
    files = [file.stat() for file in path.iterdir()]
    return CachedCorpus(path, sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0))
