"""Heartbeats: files that a process touches while it works, so that processes of other machines see that it lives.

A file lock shows the same more exactly, but some shared file systems grant every lock to everybody (GPFS, NFS with
local locks). A heartbeat then keeps two machines from removing each other's work.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

BEAT_SECONDS = 10.0
SILENT_SECONDS = 120.0  # a process of another machine that was silent for so long counts as dead


@contextlib.contextmanager
def beating(path: Path) -> Iterator[None]:
    """Make the file `path`, which names this process, and touch it at intervals; remove it at the end of the block.

    Raises `OSError` where it can't be made.
    """
    path.write_text(json.dumps({"host": host(), "pid": os.getpid()}))
    ended = threading.Event()
    threading.Thread(target=_beat, args=(path, ended), name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with contextlib.suppress(OSError):
            path.unlink()


def _beat(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT_SECONDS):
        with contextlib.suppress(OSError):  # the file system may come back
            os.utime(path)


def is_alive(path: Path, now: float) -> bool:
    """Return whether the process that made the heartbeat file `path` lives, as far as this machine can tell.

    `now` is the time of the file system's clock in seconds. If the file is missing, perhaps because it is about to be
    made, or is another user's, the time of its folder's last change is used instead. Raises `OSError`.
    """
    try:
        with path.open("rb") as stream:  # NFS looks a file up anew when it is opened
            owner, beat = stream.read(), os.fstat(stream.fileno()).st_mtime
    except (FileNotFoundError, PermissionError):
        owner, beat = b"", path.parent.stat().st_mtime
    if now - beat > SILENT_SECONDS:
        return False
    with contextlib.suppress(ValueError, TypeError, KeyError):  # being written
        told = json.loads(owner)
        return told["host"] != host() or _is_running(told["pid"])
    return True


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":  # there, signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


@functools.cache
def host() -> str:
    """Return a name for this machine since its last start, and for the container (namespace) of its process ids."""
    told = [platform.node()]
    with contextlib.suppress(OSError):
        told += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(told)
