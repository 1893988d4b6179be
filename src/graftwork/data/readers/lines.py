"""Strict lines of UTF-8 text: an invalid byte is an error with its location, never a replacement character."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from graftwork.errors import DataError, clip
from graftwork.io.gzip_files import FORMATS, NotWhole, open_unpacked, plain_name

LONGEST_LINE = 1 << 26  # bytes
MOST_KEPT, LONGEST_KEPT = 256, 1 << 20  # most lines of a file that are kept in memory, and their characters
LONGEST_DOCUMENT = 1 << 29  # bytes of a line that is a whole file of JSON
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_BOMS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")


def read_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, str]]:
    """Yield the number and text, line end included, of every line of a UTF-8 file with or without a byte-order mark.

    Raises `DataError` with the location of the first invalid byte, or with the format of a file that is not UTF-8.
    """
    for number, line in each_line(path, longest):
        if isinstance(line, DataError):
            raise line
        yield number, line


def each_line(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, str | DataError]]:
    """Yield lines like `read_lines`, but a `DataError` in place of a line that is not text: later lines may be valid.

    Raises `DataError` for an error of the whole file.
    """
    offset = 0
    for number, raw in enumerate(raw_lines(path, longest), 1):
        if number == 1:
            _refuse_foreign(path, raw)
        content = raw.removeprefix(_UTF8_BOM) if number == 1 else raw
        skipped = offset + len(raw) - len(content)
        offset += len(raw)
        zero = content.find(b"\0")
        if zero >= 0:
            yield (
                number,
                DataError(
                    f"the line has a NUL byte (byte {skipped + zero:,} of the file)",
                    where=f"{path}:{number}",
                    expected="text in UTF-8",
                    do="the file is damaged or not a text file: export it again",
                ),
            )
            continue
        try:
            yield number, content.decode("utf-8")
        except UnicodeDecodeError as error:
            yield (
                number,
                DataError(
                    f"the line is not UTF-8 (byte {skipped + error.start:,} of the file)",
                    where=f"{path}:{number}",
                    got=f"byte 0x{content[error.start]:02x} in {clip(content.decode('latin-1').rstrip())}",
                    expected="text in UTF-8",
                    do=f"if it is Windows text, {_conversion(path, 'WINDOWS-1252')}",
                ),
            )


class TextLines:
    """The lines of a file as `each_line` yields them, from the first at every iteration.

    The first lines are kept in memory, so that looking at the start of a file does not open it a second time.
    """

    def __init__(self, path: Path):
        self.path = path
        self._kept: list[tuple[int, str | DataError]] = []
        self._characters = 0  # of the kept lines
        self._stream: Iterator[tuple[int, str | DataError]] | None = each_line(path)  # the other lines
        self._whole = False  # whether all lines are kept

    def __iter__(self) -> Iterator[tuple[int, str | DataError]]:
        for place in count():
            if place == len(self._kept) and not self._keep_one():
                break
            yield self._kept[place]
        if not self._whole:
            stream, self._stream = self._stream, None
            yield from stream if stream is not None else islice(each_line(self.path), place, None)

    def _keep_one(self) -> bool:
        """Read and keep the next line; return False where there is none, or no room for it."""
        if self._stream is None or len(self._kept) == MOST_KEPT or self._characters >= LONGEST_KEPT:
            return False
        stream, self._stream = self._stream, None
        for number, line in stream:
            self._kept.append((number, line))
            self._characters += len(line) if isinstance(line, str) else 0
            self._stream = stream
            return True
        self._whole = True
        return False


def without_eol(line: str) -> str:
    """Return the line without LF or CRLF at its end."""
    return line.removesuffix("\n").removesuffix("\r")


def raw_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the bytes of every line, unpacked. Lines end at LF only: other Unicode separators may occur in a text.

    Raises `DataError` for a packed file that is truncated or unpacks to far more than a text, and for a line of
    `longest` bytes or more; `StorageError` for an unreadable file.
    """
    number = 0
    try:
        with open_unpacked(path) as stream:
            while raw := stream.readline(longest):
                number += 1
                if len(raw) == longest and not raw.endswith(b"\n"):
                    raise DataError(
                        "the line is too long",
                        where=f"{path}:{number}",
                        got=f"{longest:,} bytes or more",
                        expected="a row on every line",
                        do="check that the file has line ends, LF or CRLF",
                    )
                yield raw
    except NotWhole as error:
        whole = f"{number:,} whole lines before the place where it is torn" if number else "no whole line"
        raise DataError(
            error.what, where=f"{path}:{number + 1}", got=whole, expected=error.expected, do=error.do
        ) from None


def _refuse_foreign(path: Path, first: bytes) -> None:
    """Raise `DataError` with the file's format if the first line shows that it is not UTF-8."""
    zeros = [place for place, byte in enumerate(first[:400]) if byte == 0]
    one_parity = len({place % 2 for place in zeros}) == 1
    if first.startswith(_UTF32_BOMS):
        what, do = "UTF-32", f"convert it: {_conversion(path, 'UTF-32')}"
    elif first.startswith(_UTF16_BOMS) or (one_parity and 3 * len(zeros) >= len(first[:400])):
        little = first.startswith(b"\xff\xfe") or (zeros and zeros[0] % 2 == 1)
        what = "UTF-16" if first.startswith(_UTF16_BOMS) else f"UTF-16{'LE' if little else 'BE'}"
        do = f"convert it: {_conversion(path, what)}"
    elif first.startswith(b"\x1f\x8b"):
        packed = path.suffix.lower() in FORMATS
        what, do = "gzip", "unpack it: it is packed twice" if packed else f"rename it to {path.name}.gz"
    elif first.startswith(b"PK\x03\x04"):
        what, do = "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV (UTF-8)"
    elif zeros and first[257:262] == b"ustar":
        what, do = "a tar archive", "unpack it, and name the file inside it"
    else:
        return
    raise DataError(f"the file is {what}, not UTF-8 text", where=f"{path}:1", expected="text in UTF-8", do=do)


def _conversion(path: Path, encoding: str) -> str:
    unpacked = path.name[: len(plain_name(path))]
    command = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz"}.get(path.suffix.lower(), "")
    first = f"{command} {path.name} && " if command else ""
    return f"{first}iconv -f {encoding} -t UTF-8 {unpacked} > utf8-{unpacked}"
