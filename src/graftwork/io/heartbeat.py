"""Heartbeats: files that a process touches while it works, so that processes of other machines see that it lives.

A lock of the system says the same more exactly, but some shared file systems grant every lock to everybody (GPFS, NFS
with local locks). A heartbeat then keeps two machines from removing each other's work.
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
    """Return whether the process that made the heartbeat file `path` lives, as far as can be seen from here.

    `now` is by the clock of the file system, in seconds. Without the file, which may be about to be made, and where it
    is another user's, its folder's time counts. Raises `OSError`.
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
    if sys.platform == "win32":  # where a signal 0 would end it
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
    """Return a name of this machine, since it was started, and of the container in which process ids are counted."""
    told = [platform.node()]
    with contextlib.suppress(OSError):
        told += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(told)
