"""Selection of a corpus's files: the files named, and in folders those that are text."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftwork.errors import DataError
from graftwork.io.files import storage_errors
from graftwork.io.gzip_files import open_unpacked
from graftwork.pretrain.text_files import JSON_SUFFIXES, format_suffix

TEXT_SUFFIXES = (".txt", ".text", "")
SNIFFED = 1 << 13  # bytes inspected at the beginning of a file
MAGIC = {  # first bytes of binary formats that may have no NUL there
    b"%PDF": "PDF",
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "gzip without .gz in its name",
    b"BZh": "bzip2 without .bz2 in its name",
    b"\xfd7zXZ": "xz without .xz in its name",
    b"\x28\xb5\x2f\xfd": "zstd, which is not read: unpack it",
}


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in a folder that is not read, and the reason."""

    path: Path
    why: str


def find(paths: Sequence[Path], encoding: str) -> tuple[tuple[Path, ...], tuple[SkippedFile, ...]]:
    """Return the files to read in order, and the files in folders that are skipped.

    Paths keep the order given; the files of a folder are sorted by path. In a folder, files are read that hold text and
    have the suffix .txt, .text, .jsonl, .ndjson, .json or none, compressed or not; names that begin with a dot are
    ignored. A file given by name is read whatever its suffix. Raises `DataError` if it holds no text.
    """
    files: list[Path] = []
    skipped: list[SkippedFile] = []
    for path in paths:
        if not path.is_dir():
            if path.exists() and not path.is_file():
                raise DataError(
                    "not a file", where=str(path), do="write the text to a file: a corpus is read more than once"
                )
            why = _no_text(path, encoding)
            if why:
                raise DataError("not a text file", where=str(path), got=why, do="leave it out, or make it text")
            files.append(path)
            continue
        for inside in _walk(path):
            why = _reason(inside, encoding)
            if why:
                skipped.append(SkippedFile(inside, why))
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
        linked = [name for name in folders if Path(root, name).is_symlink()]  # os.walk does not enter them
        found += [Path(root, name) for name in (*names, *linked) if not name.startswith(".")]
    return iter(sorted(found, key=lambda path: path.relative_to(folder).parts))


def _reason(path: Path, encoding: str) -> str:
    """Return why a file in a folder is skipped; empty if it is read."""
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
    with open_unpacked(path) as stream:
        first = stream.read(SNIFFED)
    for magic, what in MAGIC.items():
        if first.startswith(magic):
            return what
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    utf16 = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # reading it raises an error with a remedy
    return "binary: it holds NUL bytes" if b"\0" in first and not wide and not utf16 else ""
