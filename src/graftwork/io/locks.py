"""File locks for one process at a time, which the system releases when their process dies."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl

    LOCKABLE = True
except ImportError:  # Windows: files can't be locked, and heartbeats decide
    LOCKABLE = False

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # errors of file systems without locks
SECONDS_BETWEEN_TRIES = 0.02


def try_lock(handle: int) -> bool | None:
    """Try to lock the open file until it is closed; return whether that worked, None where files can't be locked.

    Raises `OSError`.
    """
    return _lock(handle, wait=False)


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Wait for the lock of the file `path` and hold it in the block; the file is made if missing, and remains.

    Yields False, without waiting, where files can't be locked. Raises `OSError`.
    """
    with path.open("ab") as stream:
        yield _lock(stream.fileno(), wait=True) is not None


def remove_abandoned(path: Path, seconds: float) -> bool:
    """Remove a file whose writer, which locked it, is dead; if files can't be locked, a file older than `seconds`.

    Returns whether it was removed: a file that can't be removed remains for the next call.
    """
    with contextlib.suppress(OSError):  # already removed, or another user's
        with path.open("r+b") as stream:
            free, age = try_lock(stream.fileno()), time.time() - os.fstat(stream.fileno()).st_mtime
            if free:
                path.unlink()  # under the lock: a process about to lock it finds its name removed
                return True
        if free is None and age > seconds:
            path.unlink()
            return True
    return False


def _lock(handle: int, wait: bool) -> bool | None:
    if not LOCKABLE:
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
    """Make and `try_lock` the file `path`, yield the result, and remove the file at the end. Raises `OSError`."""
    handle, ours = _opened(path)
    try:
        yield ours
    finally:
        if ours is not False:
            with contextlib.suppress(OSError):  # under the lock: a later open of the name makes a new file
                path.unlink()
        os.close(handle)


@contextlib.contextmanager
def waiting(path: Path) -> Iterator[None]:
    """Hold the lock of `holding`, waiting for it by polling: for short blocks."""
    while True:
        with holding(path) as ours:
            if ours is not False:
                yield
                return
        time.sleep(SECONDS_BETWEEN_TRIES)


def _opened(path: Path) -> tuple[int, bool | None]:
    """Open and `try_lock` the file that has this name, again if its former holder removed it in the meantime."""
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
