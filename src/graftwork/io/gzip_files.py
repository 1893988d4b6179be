"""Reader of gzip, bzip2 and xz files, with a limit on the compression ratio against decompression bombs."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from graftwork.errors import DataError
from graftwork.io.files import storage_errors
from graftwork.io.plain_files import open_plain

FORMATS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
# Prose shrinks to a third and logs to a fiftieth; only repetitive content shrinks further, gzip at most to 1/1,032.
MOST_TIMES = 200  # most unpacked bytes per packed byte
SUSPICIOUS_TIMES = 50  # ratio from which the whole file is checked before more is returned
MODEST = 128 << 20  # unpacked bytes that are always allowed: a few rows repeated a million times
LARGEST_DICTIONARY = 192 << 20  # bytes of memory for xz: `xz -9` takes 65 MiB
_BLOCK = 8 << 10


class NotWhole(DataError):
    """A packed file that is truncated or corrupt, or in another format than its suffix says."""


def plain_name(path: Path) -> str:
    """Return the file's name in lower case, without the suffix that says how it is packed."""
    name = path.name.lower()
    return next((name.removesuffix(suffix) for suffix in FORMATS if name.endswith(suffix)), name)


@contextlib.contextmanager
def open_unpacked(path: Path, suffixes: tuple[str, ...] = tuple(FORMATS)) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; unpack it if its suffix, in either case, is among `suffixes`.

    A file that unpacks to more than `MODEST` bytes plus `MOST_TIMES` the bytes read is refused before much of it is
    returned. Raises `NotWhole`, `DataError` and `StorageError`, also while reading.
    """
    suffix = path.suffix.lower()
    with storage_errors(path):
        if suffix not in suffixes:
            with path.open("rb") as plain:
                yield plain
        else:
            with open_plain(path) as stream:
                yield cast(IO[bytes], io.BufferedReader(_Members(path, stream), 1 << 17))


class _Members(io.RawIOBase):
    """A raw stream of the unpacked members of a file, one after the other."""

    def __init__(self, path: Path, packed: IO[bytes], known: bool = False):
        """`known`: the unpacked size was already checked, or this stream is checking it."""
        self._path, self._packed, self._known = path, packed, known
        self._member, self._unread = _new(path), b""
        self._made = 0  # bytes unpacked so far

    def readable(self) -> bool:
        return True

    def times(self) -> tuple[int, int]:
        """Return the number of bytes unpacked, and of bytes read for them."""
        return self._made, self._packed.tell()

    def readinto(self, buffer: Any) -> int:
        try:
            made = self._more(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, _Corrupt) as error:
            raise self._not_whole(error) from None
        self._made += len(made)
        if not self._known and self._made > SUSPICIOUS_TIMES * self._packed.tell():
            _require_modest(self._path)
            self._known = True
        buffer[: len(made)] = made
        return len(made)

    def _more(self, most: int) -> bytes:
        """Unpack up to `most` bytes; none at the end of the last member."""
        made = b""
        while not made:
            if self._member.eof and not self._begins_another():
                break
            wanting = self._member.needs_input
            block = (self._unread or self._packed.read(_BLOCK)) if wanting else b""
            self._unread = b"" if wanting else self._unread
            made = self._decompressed(block, most)
            if wanting and not (block or made or self._member.eof):
                raise EOFError
        return made

    def _decompressed(self, block: bytes, most: int) -> bytes:
        try:
            return cast(bytes, self._member.decompress(block, most))
        except OSError as error:  # bz2's error for corrupt data
            raise _Corrupt from error

    def _begins_another(self) -> bool:
        """Begin the next member, if any, and return whether there is one; zeros, as block padding, are skipped."""
        rest = self._member.unused_data.lstrip(b"\0")
        while not rest and (block := self._packed.read(_BLOCK)):
            rest = block.lstrip(b"\0")
        self._member, self._unread = _new(self._path) if rest else self._member, rest
        return bool(rest)

    def _not_whole(self, error: Exception) -> NotWhole:
        suffix = self._path.suffix.lower()
        what = FORMATS[suffix]
        if "emory usage limit" in str(error):
            return NotWhole(
                f"the {what} file asks for too much memory", where=str(self._path),
                expected=f"a dictionary of at most {LARGEST_DICTIONARY >> 20} MiB", do="unpack it, if you trust it",
            )  # fmt: skip
        return NotWhole(
            f"not a whole {what} file", where=str(self._path), expected=f"{what}, as its suffix says",
            do=f"copy it again, or remove {suffix} from its name",
        )  # fmt: skip


class _Corrupt(Exception):
    """Corrupt data, which bz2 raises as an `OSError`."""


class _Inflating:
    """zlib's decompressor with the interface of bz2's and lzma's: it keeps unconsumed input."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, most)


def _new(path: Path) -> Any:
    """Return a decompressor for one member."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return _Inflating()
    return bz2.BZ2Decompressor() if suffix == ".bz2" else lzma.LZMADecompressor(memlimit=LARGEST_DICTIONARY)


def _require_modest(path: Path) -> None:
    """Unpack the file once without keeping anything. Raises `DataError` if it unpacks to too much."""
    with open_plain(path) as packed:
        members = _Members(path, packed, known=True)
        block = bytearray(1 << 20)
        with contextlib.suppress(NotWhole):  # raised to the reader when it gets there
            while members.readinto(block):
                made, read = members.times()
                if made > MODEST + MOST_TIMES * read:
                    raise DataError(
                        f"the {FORMATS[path.suffix.lower()]} file unpacks to far more than a text would",
                        where=str(path),
                        got=f"more than {made:,} bytes out of the first {read:,}",
                        expected=f"at most {MODEST >> 20} MiB, or {MOST_TIMES} times the packed size",
                        do="unpack it and name the unpacked file, if you trust its source",
                    )
