"""The cache folder on disk: what is in it, and what goes when it is full or a process died.

One file per entry. Everything here is safe while other processes read and write the same folder: a file is renamed
into place whole, and on POSIX one that is removed stays readable for whoever has it mapped. An entry on its way is
locked by the process that fills it, for as long as that lives. One process at a time decides what goes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graftwork.errors import StorageError
from graftwork.io.files import header_of
from graftwork.io.locks import held, remove_abandoned
from graftwork.units import parse_bytes

CACHE_SIZE = "10GB"  # the cap, unless the user says otherwise
ENTRY = re.compile(r"[0-9a-f]{64}-(pooled|[0-9]+)\.safetensors")
PART = re.compile(r"\.[0-9a-f]{64}-.*\.part")  # an entry on its way; what a killed process leaves
PART_SECONDS = 3600.0  # where no file can be locked, older parts belong to nobody


class BeingFilled(Exception):
    """Another process is on its way with the very entry."""


@dataclass(frozen=True)
class CacheEntry:
    """One file of the cache."""

    path: Path
    bytes: int
    used: float  # seconds since the epoch: when it was last read or written

    def about(self) -> Mapping[str, str]:
        """What its header says it holds; empty when the file is torn or gone."""
        try:
            return header_of(self.path).about
        except StorageError:
            return {}


def cache_folder(root: str | Path | None = None) -> Path:
    """Where passes are kept: under `root`, else $GRAFTWORK_CACHE, $XDG_CACHE_HOME/graftwork or ~/.cache/graftwork."""
    if root is None:
        own, shared = os.environ.get("GRAFTWORK_CACHE"), os.environ.get("XDG_CACHE_HOME")
        root = own or (Path(shared) if shared else Path("~/.cache")) / "graftwork"
    return Path(root).expanduser() / "prefix"


class CacheFolder:
    """Entries under `root`, of which the least recently used go when all together would exceed `cap_bytes`."""

    def __init__(self, root: Path, cap_bytes: int = parse_bytes(CACHE_SIZE)):
        self.root, self.cap_bytes = root, cap_bytes

    def entries(self) -> list[CacheEntry]:
        """Least recently used first. Raises `OSError` when the folder can't be read."""
        return sorted(self._files(ENTRY), key=lambda entry: (entry.used, entry.path.name))

    def touch(self, path: Path) -> None:
        """Note that this entry was used now."""
        with contextlib.suppress(OSError):  # a folder that is only to be read
            os.utime(path)

    @contextlib.contextmanager
    def room_for(self, size: int, path: Path) -> Iterator[bool]:
        """Holds the folder's lock with `size` bytes free below the cap for the entry `path`, or yields False.

        Raises `BeingFilled`, `OSError`.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with held(self.root / ".lock") as can_lock:
            self._sweep()
            if can_lock and any(part.path.name.startswith(f".{path.name}.") for part in self._files(PART)):
                raise BeingFilled
            yield self._evict(size)

    def clear(self, unused_seconds: float = 0.0) -> list[CacheEntry]:
        """Remove the entries not used for that long, and every leftover; what was removed. Raises `OSError`."""
        if not self.root.is_dir():
            return []
        with held(self.root / ".lock"):
            leftovers = self._sweep()
            latest = time.time() - unused_seconds
            return leftovers + [entry for entry in self.entries() if entry.used <= latest and _remove(entry)]

    def _evict(self, size: int) -> bool:
        entries, others = self.entries(), sum(part.bytes for part in self._files(PART))
        if size + others > self.cap_bytes:
            return False  # and nothing is thrown away for it
        total = others + sum(entry.bytes for entry in entries)
        for entry in entries:
            if total + size <= self.cap_bytes:
                break
            total -= entry.bytes if _remove(entry) else 0
        return total + size <= self.cap_bytes

    def _sweep(self) -> list[CacheEntry]:
        """Remove what killed processes left."""
        return [part for part in self._files(PART) if remove_abandoned(part.path, PART_SECONDS)]

    def _files(self, pattern: re.Pattern[str]) -> list[CacheEntry]:
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.root) as listed:
            for item in listed:
                with contextlib.suppress(FileNotFoundError):  # another process removed it meanwhile
                    if pattern.fullmatch(item.name):
                        stat = item.stat(follow_symlinks=False)
                        found.append(CacheEntry(Path(item.path), stat.st_size, stat.st_mtime))
        return found


def _remove(entry: CacheEntry) -> bool:
    try:
        entry.path.unlink()
    except OSError:  # gone already, or (Windows) mapped by a process
        return False
    return True
