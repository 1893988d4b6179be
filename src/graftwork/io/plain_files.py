"""Checks of plain files: regular, inside their folder without links, and recognised by their first bytes."""

from __future__ import annotations

import errno
import os
import site
import stat
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath

from graftwork.errors import StorageError, clip

MOST_FILES = 10_000  # most entries of an untrusted folder
LOOKED_AT = 512  # bytes read to recognise a file's format
_OPENED = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NAMED = (
    (stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"), (stat.S_ISCHR, "a device"), (stat.S_ISDIR, "a folder"),
)  # fmt: skip
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"), (b"PK\x05\x06", "a zip archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x1f\x8b", "a gzip file"), (b"BZh", "a bzip2 file"), (b"\xfd7zXZ\x00", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"), (b"Rar!", "a rar archive"), (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x7fELF", "a program"), (b"MZ", "a program"), (b"#!", "a program"), (b"GGUF", "a GGUF file"),
    (b"%PDF", "a PDF document"), (b"\x93NUMPY", "an array of NumPy's"), (b"\x80\x02", "a pickle"),
    (b"\x80\x03", "a pickle"), (b"\x80\x04", "a pickle"), (b"\x80\x05", "a pickle"), (b"<", "markup"),
    (b"version https://git-lfs", "a pointer of git-lfs, whose file was not fetched"),
)  # fmt: skip


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading bytes. A pipe or a device is neither waited for nor read.

    Raises `OSError` as `open` does, `StorageError` for other than a regular file.
    """
    handle = os.open(path, _OPENED)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise _refused(path, mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_plain(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes; a larger one is not read. Raises `OSError` or `StorageError`."""
    with open_plain(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        content = b"" if size > most else stream.read(most + 1)
    if size > most or len(content) > most:
        raise StorageError(
            "the file is too large for its purpose",
            where=str(path),
            got=f"{max(size, len(content)):,} bytes",
            expected=f"at most {most:,} bytes",
        )
    return content


def inside(folder: Path, name: str, told_by: Path | None = None) -> Path:
    """Return the path of the file `name` in `folder`, which exists and is no link. Messages give `told_by` as location.

    Links on the way to `folder` itself are allowed, as its owner made them. So are links inside an installed package,
    which a package manager may make. Raises `StorageError` for a name that leads out of the folder, and for a link or
    special file on the way, `OSError` for a missing file.
    """
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    windows = PureWindowsPath(name) if parts else None
    outside = windows is None or bool(windows.drive or windows.root) or ".." in (*parts, *windows.parts)
    if outside or "\0" in name:
        raise StorageError(
            "a file name that points outside its folder",
            where=str(told_by or folder),
            got=clip(str(name)),
            expected="the name of a file in the same folder",
        )
    path = folder
    for part in parts:
        path = path / part
        _require_no_link(path, installed(folder))
    return path


def installed(folder: Path) -> bool:
    """Return whether `folder` is inside the installed packages, where a package manager may make links."""
    places = (*site.getsitepackages(), site.getusersitepackages())
    return any(folder.absolute().is_relative_to(place) for place in places)


def require_plain_folder(folder: Path) -> None:
    """Raise `StorageError` unless `folder` holds only plain files and folders, at most `MOST_FILES` of them.

    A symbolic link is refused wherever it leads. A hard link is indistinguishable from the file itself: its content is
    checked like any other, and it is never written to.
    """
    waiting, seen = [folder], 0
    while waiting:
        with os.scandir(waiting.pop()) as listed:
            for entry in listed:
                mode = entry.stat(follow_symlinks=False).st_mode
                seen += 1
                if stat.S_ISDIR(mode):
                    waiting.append(Path(entry.path))
                elif not stat.S_ISREG(mode):
                    raise _refused(Path(entry.path), mode)
        if seen > MOST_FILES:
            raise StorageError(
                "too many files for such a folder", where=str(folder), expected=f"at most {MOST_FILES:,}"
            )


def foreign(start: bytes) -> str | None:
    """Return the format that a file's first bytes show, if it is neither tensors nor text."""
    return next((name for mark, name in _FOREIGN if start.startswith(mark)), None)


def _require_no_link(path: Path, followed: bool) -> None:
    mode = (os.stat if followed else os.lstat)(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise _refused(path, mode)


def _refused(path: Path, mode: int) -> StorageError:
    what = next((name for test, name in _NAMED if test(mode)), "something else")
    return StorageError(
        f"{what} where a plain file is expected",
        where=str(path),
        expected="a regular file in the folder itself",
        do="replace it by a copy of the file, if you trust its source",
    )
