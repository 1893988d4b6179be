"""Locks on files: one process at a time, and the system frees what a process held in the moment in which it dies."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # what file systems without locks answer
SECONDS_BETWEEN_TRIES = 0.02


def try_lock(handle: int) -> bool | None:
    """Whether the open file is now this process's alone, until it is closed; None where no file can be locked.

    Raises `OSError`.
    """
    return _lock(handle, wait=False)


@contextlib.contextmanager
def held(path: Path) -> Iterator[bool]:
    """The file `path` is this process's alone in the block, once whoever holds it is done; it is made for it and stays.

    False where no file can be locked: nobody waits. Raises `OSError`.
    """
    with path.open("ab") as stream:
        yield _lock(stream.fileno(), wait=True) is not None


def remove_abandoned(path: Path, seconds: float) -> bool:
    """Remove a file whose writer, which locked it, is dead; where no file can be locked, one older than `seconds`.

    Whether it was removed: one that can't be removed is left for the next.
    """
    with contextlib.suppress(OSError):  # gone already, or another user's
        with path.open("r+b") as stream:
            free, age = try_lock(stream.fileno()), time.time() - os.fstat(stream.fileno()).st_mtime
            if free:
                path.unlink()  # while it is held: who was about to lock it finds its name gone
                return True
        if free is None and age > seconds:
            path.unlink()
            return True
    return False


def _lock(handle: int, wait: bool) -> bool | None:
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True


@contextlib.contextmanager
def holding(path: Path) -> Iterator[bool | None]:
    """`try_lock` of the file `path`, which is made for it and is gone when the block ends. Raises `OSError`."""
    handle, ours = _opened(path)
    try:
        yield ours
    finally:
        if ours is not False:
            with contextlib.suppress(OSError):  # while it is held: whoever opens the name from here on makes a new one
                path.unlink()
        os.close(handle)


@contextlib.contextmanager
def waiting(path: Path) -> Iterator[None]:
    """As `holding`, once whoever holds it is done: for what takes a moment."""
    while True:
        with holding(path) as ours:
            if ours is not False:
                yield
                return
        time.sleep(SECONDS_BETWEEN_TRIES)


def _opened(path: Path) -> tuple[int, bool | None]:
    """A handle of the file that has the name now: a former holder takes its own away at the end."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            ours = try_lock(handle)
            if not ours or os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle, ours
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
