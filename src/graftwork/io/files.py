"""File access: atomic writes, content hashes, and the only function that loads weights."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from graftwork.errors import ConfigError, IncompatibleModule, StorageError
from graftwork.io.heartbeat import SILENT_SECONDS
from graftwork.io.json_limits import DATA, MOST_TOML, BeyondLimits, JsonLimits, parse_json, parse_toml
from graftwork.io.locks import holding, remove_abandoned, try_lock
from graftwork.io.plain_files import LOOKED_AT, open_plain, read_plain
from graftwork.io.safetensors_header import FROM_ITS_SOURCE, Contents, not_safetensors, read_header

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: Any) -> str:
    """Encode JSON canonically, for hashing: sorted keys, no spaces, no NaN."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """Return the sha256 of a JSON value's canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


_NOTES: ContextVar[dict[str, str] | None] = ContextVar("notes", default=None)


def file_digest(path: Path) -> str:
    """Return the sha256 of a file's bytes. Raises `StorageError`, also for a pipe or a device."""
    with storage_errors(path), open_plain(path) as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    notes = _NOTES.get()
    if notes is not None:
        notes[str(path)] = found
    return found


@contextlib.contextmanager
def noting_digests() -> Iterator[dict[str, str]]:
    """Collect path -> sha256 of every file that `file_digest` reads in this block, so that large ones are read once."""
    notes: dict[str, str] = {}
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


_FULL = ("the disk is full", "free some space and run the same command again; finished runs are kept")
_IN_THE_WAY = ("a file is in the place of a folder", "choose another path, or move the file away")
_ASTRAY = ("a broken link", "correct the link, or choose another path")
_MEANINGS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: ("the file is larger than the system allows", "choose another folder, or raise the limit"),
    errno.EROFS: ("this file system is read-only", "choose another folder, or mount it writable"),
    errno.EIO: ("the disk reports an error", "copy its files to another disk; finished runs are kept"),
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOENT: ("no such file or folder", "check the path"),
    errno.EISDIR: ("this is a folder, where a file is needed", "choose another path"),
    errno.ELOOP: _ASTRAY,
    errno.ENAMETOOLONG: ("the name is too long for this file system", "choose a shorter one"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n) and run the same command again"),
}

PART = ".part"  # suffix of a temporary file
PART_SECONDS = 86_400.0  # where files can't be locked, older ones count as abandoned
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)  # errors independent of the path


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert an `OSError` to a `StorageError` that names `path` and a remedy."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, str(path)) from error


def storage_error(error: OSError, where: str) -> StorageError:
    """Return the `StorageError` for an `OSError`, with its meaning and a remedy."""
    unknown = (
        f"cannot read or write here: {error.strerror or error}",
        "choose another folder, or change its permissions",
    )
    what, do = _MEANINGS.get(error.errno or 0, unknown)
    astray = _astray(Path(where)) if error.errno in (errno.ENOENT, errno.EEXIST) else None
    if astray is not None:
        (what, do), where = _ASTRAY, str(astray)
    return StorageError(what, where=where, do=do)


def _astray(path: Path) -> Path | None:
    """Return the dangling link on the way to `path`, if any."""
    with contextlib.suppress(OSError):
        return next((place for place in (path, *path.parents) if place.is_symlink() and not place.exists()), None)
    return None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; make its folder if missing."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a stream for an atomic write: if the block fails, the previous file remains.

    Temporary name in the same folder, locked; flush, fsync, rename, fsync of the folder. Temporary files of killed
    writers of the same file are removed. If `path` is a link, its target is written. A pipe, a device such as /dev/null
    and the standard output and error of this process are written to directly. Raises `StorageError`.
    """
    with storage_errors(path):
        through = _special_file(path)
        if through is not None:
            with through:
                yield through
            return
        path = Path(os.path.realpath(path))
        _sweep(path)
        handle, name = _locked_temporary(path)
        lock = None if sys.platform == "win32" else os.dup(handle)  # held until the file is renamed
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileNotFoundError):
                os.chmod(name, os.stat(path).st_mode & 0o777)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        finally:
            if lock is not None:
                os.close(lock)
        sync_folder(path.parent)


def _special_file(path: Path) -> BinaryIO | None:
    """Return a stream into what must not be replaced at `path`, such as a pipe; None for a file, or nothing.

    Raises `OSError` for a folder, `StorageError` for what can't be written to, such as a disk.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for printed in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(found, os.fstat(printed)):
                sys.stdout.flush()
                return os.fdopen(os.dup(printed), "wb")
    if stat.S_ISREG(found.st_mode):
        return None
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISFIFO(found.st_mode)):
        raise StorageError(
            "neither a file nor a pipe",
            where=str(path),
            expected="a file, or a name that does not exist yet",
            do="choose another path",
        )
    return path.open("wb")


def _locked_temporary(path: Path) -> tuple[int, str]:
    """Create and lock a temporary file for `path`, safe from `_sweep`; return its handle and name.

    Its permissions are those of the existing file; without one, those of the umask.
    """
    try:
        rights = (os.stat(path).st_mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR
    except FileNotFoundError:
        rights = 0o666
    while True:
        name = str(path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}"))
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), rights)
        try:
            if try_lock(handle) is not False and os.path.samestat(os.fstat(handle), os.stat(name)):
                return handle, name
        except FileNotFoundError:  # swept away between its creation and its lock
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove temporary files for `path` whose writers are dead; those that can't be removed remain for the next.

    Recent ones are kept: where every lock is granted to everybody, their writers may live on other machines.
    """
    with contextlib.suppress(OSError), os.scandir(path.parent) as listed:
        for entry in listed:
            ours = entry.name.startswith(f".{path.name}.") and entry.name.endswith(PART)
            if ours and entry.stat().st_mtime < time.time() - SILENT_SECONDS:
                remove_abandoned(Path(entry.path), PART_SECONDS)


def sync_tree(folder: Path) -> None:
    """Sync everything in `folder`, so that it survives a power cut, whichever process wrote it."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_folder(Path(place, name))
        sync_folder(Path(place))


def sync_folder(path: Path) -> None:
    """Sync a folder, so that renames in it survive a power cut, or a file."""
    if sys.platform == "win32":  # can't open folders, or files read-only, for fsync
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # file systems that can't sync folders
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def only_one_process(path: Path, what: str, do: str) -> Iterator[None]:
    """Let only one process at a time execute a block, by a temporary lock file `path`, if files can be locked there.

    Raises `StorageError` if another process is in the block, with `what` it does and the remedy `do`.
    """
    with contextlib.ExitStack() as held:
        with storage_errors(path):
            ours = held.enter_context(holding(path))
        if ours is False:
            raise StorageError(what, where=str(path.parent), do=do)
        yield


def require_writable(folder: Path) -> None:
    """Make `folder` if needed, and check early that it is writable. Raises `StorageError`."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 atomically. A surrogate of an undecodable path byte becomes an escape that JSON restores."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically. NaN and infinities, which JSON does not have, become null."""
    write_text(path, json.dumps(finite(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """Return `value` with every NaN or infinity replaced by None, recursively in lists and dictionaries."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def read_json(path: Path, limits: JsonLimits = DATA) -> Any:
    """Read a JSON file. Raises `StorageError` when it is missing, unreadable, truncated or beyond `limits`."""
    with storage_errors(path):
        content = read_plain(path, limits.bytes)
    try:
        return parse_json(content, limits)
    except BeyondLimits as rule:
        raise StorageError(
            f"this JSON is not read: {rule}", where=str(path), do="have it written anew by what made it"
        ) from None
    except ValueError as error:
        raise StorageError(f"not a valid JSON file: {error}", where=str(path), do="remove it and run again") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, with or without a byte-order mark. Raises `StorageError`, or `ConfigError` for invalid TOML."""
    with storage_errors(path):
        content = read_plain(path, MOST_TOML)
    try:
        return parse_toml(content)
    except BeyondLimits as rule:
        raise StorageError(f"this TOML is not read: {rule}", where=str(path), do=FROM_ITS_SOURCE) from None
    except ValueError as error:
        raise ConfigError(
            f"not a TOML file: {error}", where=str(path), expected="TOML in UTF-8", do="correct it, or save it as UTF-8"
        ) from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor | NDArray[Any]]) -> None:
    """Write a safetensors file atomically; NumPy arrays give the same file as tensors, without importing torch."""
    import numpy as np

    arrays = {name: np.asarray(one, order="C") for name, one in tensors.items() if isinstance(one, np.ndarray)}
    if len(arrays) == len(tensors):
        from safetensors.numpy import save as save_arrays

        write_bytes(path, save_arrays(arrays))
        return
    import torch
    from safetensors.torch import save

    write_bytes(path, save({name: torch.as_tensor(one).detach().contiguous() for name, one in tensors.items()}))


def safe_load(path: Path, *, mapped: bool = True) -> dict[str, Tensor]:
    """Load the tensors of a safetensors file, or of a file by `torch.save` (.bin), whose code is not run.

    All weights are loaded here and by `load_and_digest`: before a tensor is allocated, the file is checked against its
    header, to the last byte. Raises `StorageError`. If `mapped`, a safetensors file is memory-mapped, and must not
    change while its tensors are used.
    """
    from safetensors.torch import load_file

    with storage_errors(path):
        if path.suffix not in (".safetensors", ".bin"):
            raise StorageError("no such weights file", where=str(path), expected="a .safetensors file")
        if path.suffix == ".bin":
            from graftwork.io.torch_archive import read_archive

            with open_plain(path) as stream:
                return read_archive(stream, path)
        if not mapped:
            return load_and_digest(path)[0]
        header_of(path)
        return load_file(path)


def load_and_digest(path: Path) -> tuple[dict[str, Tensor], str]:
    """Read a safetensors file into memory: its tensors, and its sha256. Raises `StorageError`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    with storage_errors(path), open_plain(path) as stream:
        content = stream.read()
    try:
        return load(content), hashlib.sha256(content).hexdigest()
    except SafetensorError as error:
        raise not_safetensors(path, content, error) from None


def header_of(path: Path) -> Contents:
    """Read the header of a safetensors file. Raises `StorageError` unless the file is complete."""
    from safetensors import SafetensorError

    with storage_errors(path):
        with open_plain(path) as stream:
            start = stream.read(LOOKED_AT)
        try:
            return read_header(path)
        except SafetensorError as error:
            raise not_safetensors(path, start, error) from None


def require_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise `IncompatibleModule` where a weight is NaN or infinite, which would spoil every result."""
    import torch

    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            tensor = tensor.float() if tensor.itemsize == 1 else tensor
            total = tensor.sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
            if not math.isfinite(float(total)) and not bool(torch.isfinite(tensor).all()):
                raise IncompatibleModule(
                    f"the weights contain NaN or infinity, in {name[:80]!r}",
                    where=str(path),
                    expected="finite numbers",
                    do="use other weights: the training diverged, or the file is damaged",
                )
