"""Free space and write access of the folders of runs, the cache and temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graftwork.doctor.check import Check, Finding, IntendedUse
from graftwork.doctor.places import existing, file_system, places
from graftwork.io.cache_folder import CACHE_SIZE
from graftwork.registry import checks
from graftwork.units import parse_bytes, show

LEAST_BYTES = 200_000_000  # a run of `full` on minilm stores 45 MB, and needs twice that while running
LEAST_FILES = 1_000
REMEDY = {
    "runs": "--runs DIR, a folder of your own on a disk with room",
    "cache": "--cache DIR or $GRAFTWORK_CACHE, a folder of your own on a disk with room; --cache-size 0 keeps nothing",
    "tmp": "set TMPDIR to a folder of your own on a disk with room",
}
ACROSS_A_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "ceph", "fuse.sshfs", "glusterfs", "afs")


def look(asked: IntendedUse) -> Iterator[Finding]:
    """Report "fails" where a folder can't be written or is nearly full; for the cache only "slow"."""
    for name, folder in places(asked).items():
        yield from _findings(name, folder)


def _findings(name: str, folder: Path) -> Iterator[Finding]:
    level, without = ("slow", "frozen passes are computed again each time") if name == "cache" else ("fails", "")
    there = existing(folder)
    reason = _unwritable(there)
    if reason is not None:
        yield Finding(f"{name}: {there} can't be written: {reason}", level, without, REMEDY[name])
        return
    free, files, kind = shutil.disk_usage(there).free, _free_files(there), file_system(there)
    facts = {"place": name, "folder": str(folder), "free_bytes": free, "free_files": files, "file_system": kind}
    made = "" if there == folder.absolute() else ", not made yet"
    yield Finding(f"{name}: {show(free, 'bytes')} free at {folder}{made}{f' ({kind})' if kind else ''}", facts=facts)
    if free < LEAST_BYTES or (files is not None and files < LEAST_FILES):
        left = show(free, "bytes") if free < LEAST_BYTES else f"room for {files:,} files"
        yield Finding(f"{name}: the disk is full but for {left}", level, without, REMEDY[name])
    elif name == "cache" and free < parse_bytes(CACHE_SIZE):
        why = f"it may grow to {CACHE_SIZE}"
        yield Finding(f"cache: {show(free, 'bytes')} free", "note", why, "--cache-size SIZE; graft cache clear")
    if kind in ACROSS_A_NETWORK:
        why = "every file access waits for the network, and file locks work only if the server supports them"
        yield Finding(f"{name}: {folder} lies across a network ({kind})", "slow", why, REMEDY[name].partition(";")[0])


def _unwritable(folder: Path) -> str | None:
    """Return why the folder can't be written, None if it can; tries it with a temporary file."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _free_files(folder: Path) -> int | None:
    """Return the number of files that the file system can still create; None where it has no such limit."""
    if not hasattr(os, "statvfs"):
        return None
    stat = os.statvfs(folder)
    return stat.f_favail if stat.f_files else None


checks.register("disk")(Check("folders", look))
