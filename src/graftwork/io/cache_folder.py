"""The cache folder on disk: its entries, their eviction, and removal of dead processes' leftovers.

One file per entry. All operations are safe while other processes read and write the same folder: a file is renamed
into place when complete, and on POSIX a removed one stays readable for processes that have it mapped. A process locks
the entry that it writes for as long as it lives. One process at a time evicts.
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
from graftwork.io.locks import hold_lock, remove_abandoned
from graftwork.units import parse_bytes

CACHE_SIZE = "10GB"  # default cap
ENTRY = re.compile(r"[0-9a-f]{64}-(pooled|[0-9]+)\.safetensors")
PART = re.compile(r"\.[0-9a-f]{64}-.*\.part")  # an entry being written, or left by a killed process
PART_SECONDS = 3600.0  # where files can't be locked, older parts count as abandoned


class EntryBeingWritten(Exception):
    """Another process is writing the same entry."""


@dataclass(frozen=True)
class CacheEntry:
    """One file of the cache."""

    path: Path
    bytes: int
    used: float  # time of the last read or write, in seconds since the Unix epoch

    def about(self) -> Mapping[str, str]:
        """Return the metadata of its header; empty when the file is truncated or missing."""
        try:
            return header_of(self.path).about
        except StorageError:
            return {}


def cache_folder(root: str | Path | None = None) -> Path:
    """Return the cache folder: under `root`, else $GRAFTWORK_CACHE, $XDG_CACHE_HOME/graftwork or ~/.cache/graftwork."""
    if root is None:
        own, shared = os.environ.get("GRAFTWORK_CACHE"), os.environ.get("XDG_CACHE_HOME")
        root = own or (Path(shared) if shared else Path("~/.cache")) / "graftwork"
    return Path(root).expanduser() / "prefix"


def touch(path: Path) -> None:
    """Set the time of last use of the cache entry with this file to now."""
    with contextlib.suppress(OSError):  # the cache may be read-only
        os.utime(path)


class CacheFolder:
    """Cache entries under `root`, the files whose names match `entry`.

    The least recently used are evicted when the total would exceed `cap_bytes`.
    """

    def __init__(self, root: Path, cap_bytes: int = parse_bytes(CACHE_SIZE), entry: re.Pattern[str] = ENTRY):
        self.root, self.cap_bytes, self.entry = root, cap_bytes, entry

    def entries(self) -> list[CacheEntry]:
        """List the entries, least recently used first. Raises `OSError` when the folder can't be read."""
        return sorted(self._files(self.entry), key=lambda entry: (entry.used, entry.path.name))

    @contextlib.contextmanager
    def room_for(self, size: int, path: Path) -> Iterator[bool]:
        """Make room for an entry of `size` bytes at `path`, and hold the folder's lock; yield whether the cap allows.

        Raises `EntryBeingWritten` if another process writes the same entry, `OSError`.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with hold_lock(self.root / ".lock") as can_lock:
            self._sweep()
            if can_lock and any(part.path.name.startswith(f".{path.name}.") for part in self._files(PART)):
                raise EntryBeingWritten
            yield self._evict(size)

    def clear(self, unused_seconds: float = 0.0) -> list[CacheEntry]:
        """Remove entries unused for `unused_seconds`, and all leftovers; return what was removed. Raises `OSError`."""
        if not self.root.is_dir():
            return []
        with hold_lock(self.root / ".lock"):
            leftovers = self._sweep()
            latest = time.time() - unused_seconds
            return leftovers + [entry for entry in self.entries() if entry.used <= latest and _remove(entry)]

    def _evict(self, size: int) -> bool:
        entries, others = self.entries(), sum(part.bytes for part in self._files(PART))
        if size + others > self.cap_bytes:
            return False  # and nothing is evicted for it
        total = others + sum(entry.bytes for entry in entries)
        for entry in entries:
            if total + size <= self.cap_bytes:
                break
            total -= entry.bytes if _remove(entry) else 0
        return total + size <= self.cap_bytes

    def _sweep(self) -> list[CacheEntry]:
        """Remove the leftovers of killed processes."""
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
