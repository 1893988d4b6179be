"""Which files a corpus is made of: those that are named, and in folders those that are text."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftwork.errors import DataError
from graftwork.io.files import storage_errors
from graftwork.io.gzip_files import unpacked
from graftwork.pretrain.text_files import JSON_SUFFIXES, format_suffix

TEXT_SUFFIXES = (".txt", ".text", "")
SNIFFED = 1 << 13  # bytes that are looked at
MAGIC = {  # what a file begins with, where the first bytes may hold no NUL
    b"%PDF": "PDF",
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "gzip without .gz in its name",
    b"BZh": "bzip2 without .bz2 in its name",
    b"\xfd7zXZ": "xz without .xz in its name",
    b"\x28\xb5\x2f\xfd": "zstd, which is not read: unpack it",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of a folder that is not read."""

    path: Path
    why: str


def find(paths: Sequence[Path], encoding: str) -> tuple[tuple[Path, ...], tuple[Skipped, ...]]:
    """The files to read in order, and those of folders that are left out.

    What is named comes in the order named, what a folder holds by its path. In a folder, files count that are called
    .txt, .text, .jsonl, .ndjson, .json or nothing, packed or not, and hold text; what begins with a point is not
    looked at. A file that is named is read whatever it is called. Raises `DataError` for one that holds no text.
    """
    files: list[Path] = []
    skipped: list[Skipped] = []
    for path in paths:
        if not path.is_dir():
            if path.exists() and not path.is_file():
                raise DataError("not a file", where=str(path), do="write it to a file: it is read more than once")
            why = _no_text(path, encoding)
            if why:
                raise DataError("not a text file", where=str(path), got=why, do="leave it out, or make it text")
            files.append(path)
            continue
        for inside in _walk(path):
            why = _reason(inside, encoding)
            if why:
                skipped.append(Skipped(inside, why))
            else:
                files.append(inside)
    return tuple(dict.fromkeys(files)), tuple(skipped)


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        with storage_errors(Path(error.filename)):
            raise error

    found = []
    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked = [name for name in folders if Path(root, name).is_symlink()]  # not walked
        found += [Path(root, name) for name in (*names, *linked) if not name.startswith(".")]
    return iter(sorted(found, key=lambda path: path.relative_to(folder).parts))


def _reason(path: Path, encoding: str) -> str:
    """Why a file of a folder is left out; empty: it is read."""
    if not path.exists():
        return "a link to nothing"
    if path.is_dir():
        return "a link to a folder: name it to have it read"
    if not path.is_file():
        return "no file"
    suffix = format_suffix(path)
    if suffix not in (*TEXT_SUFFIXES, *JSON_SUFFIXES):
        return f"called {suffix}: name the file to have it read"
    return _no_text(path, encoding)


def _no_text(path: Path, encoding: str) -> str:
    with unpacked(path) as stream:
        first = stream.read(SNIFFED)
    for magic, what in MAGIC.items():
        if first.startswith(magic):
            return what
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    utf16 = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # an error with its remedy when it is read
    return "binary: it holds NUL bytes" if b"\0" in first and not wide and not utf16 else ""
