"""A corpus: files of text as a stream of documents, each in the split that its own text decides."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from graftwork.errors import ConfigError, DataError, UnknownName
from graftwork.io.files import digest, file_digest, storage_errors
from graftwork.io.gzip_files import FORMATS
from graftwork.pretrain.corpus_files import Skipped, find
from graftwork.pretrain.text_files import JSON_SUFFIXES, UNITS, format_suffix, parts

VALIDATION = 0.02  # of the documents, unless the user says otherwise
SPLITS = ("train", "validation")
SALT = b"graftwork corpus 1"
UNPACKS_TO = 3  # bytes of text that a packed byte is taken for
LISTED = 5  # skipped files that a message names


@dataclass(frozen=True, slots=True)
class Document:
    """A text, or a part of one that is too long to be held at once."""

    text: str
    split: str  # "train" or "validation"
    key: int  # 64 bits of a hash of the text: equal texts, equal keys. Of a part, its document's first part's
    continues: bool = False  # the part before this one is of the same document


@dataclass(frozen=True)
class Corpus:
    """Files in the order in which they are read; `documents` reads them anew, from the start, at every call."""

    files: tuple[Path, ...]
    skipped: tuple[Skipped, ...] = ()
    validation: float = VALIDATION  # share of the documents in the validation split
    unit: str = "line"  # what a document is in a text file: a line, a paragraph (blank lines between) or the file
    field: str = "text"  # of JSONL
    encoding: str = "utf-8"

    def documents(self, split: str | None = None) -> Iterator[Document]:
        """Every document that is not empty, of one split or of both, one in memory at a time.

        Which split a document is in depends on its text alone: no seed, no order and no neighbour moves it, and equal
        texts are never in both. Raises `DataError`, also at the end of a corpus without text, and `StorageError`.
        """
        empty, key = True, 0
        for path in self.files:
            for text, continues in parts(path, self.unit, self.field, self.encoding):
                if not continues:
                    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=SALT).digest(), "big")
                own = SPLITS[key < self.validation * 2**64]
                empty = False
                if split in (None, own):
                    yield Document(text, own, key, continues)
        if empty:
            raise DataError(
                "the corpus has no text",
                where=", ".join(map(str, self.files[:LISTED])),
                got=self.listed(),
                expected="files with text in them",
                do="name other files",
            )

    def digest(self) -> str:
        """sha256 over what is read and how: every file's bytes in order, which are JSONL, and the settings.

        Names count for nothing else. The files are read for it once.
        """
        return self._known[0]

    def require_unchanged(self) -> None:
        """Raise `DataError` when a file was written to after the digest was taken: it is not of what was read."""
        for path, stamp in zip(self.files, self._known[1], strict=True):
            if _stamp(path) != stamp:
                raise DataError("the file changed while it was read", where=str(path), do="run it again")

    @cached_property
    def _known(self) -> tuple[str, list[tuple[int, int]]]:
        stamps = [_stamp(path) for path in self.files]
        own = {name: getattr(self, name) for name in ("validation", "unit", "field", "encoding")}
        objects = [place for place, path in enumerate(self.files) if format_suffix(path) in JSON_SUFFIXES]
        own |= {"objects": objects} if objects else {}  # without any, text is found under the digest it always had
        return digest({"files": [file_digest(path) for path in self.files], **own}), stamps

    def bytes_about(self) -> int:
        """Bytes of text, guessed from the sizes of the files. Raises `StorageError`."""
        return sum(_stamp(path)[0] * (UNPACKS_TO if path.suffix.lower() in FORMATS else 1) for path in self.files)

    def listed(self) -> str:
        """How many files are read, and which are not and why: `3 files; 1 skipped: a.png (binary…)`."""
        files = f"{len(self.files):,} {'file' if len(self.files) == 1 else 'files'}"
        if not self.skipped:
            return files
        named = ", ".join(f"{one.path} ({one.why})" for one in self.skipped[:LISTED])
        return f"{files}; {len(self.skipped):,} skipped: {named}{', …' if len(self.skipped) > LISTED else ''}"


def _stamp(path: Path) -> tuple[int, int]:
    """Size in bytes, and when it was last written to."""
    with storage_errors(path):
        found = path.stat()
    return found.st_size, found.st_mtime_ns


def open_corpus(
    paths: Sequence[str | Path],
    *,
    validation: float = VALIDATION,
    unit: str = "line",
    field: str = "text",
    encoding: str = "utf-8",
) -> Corpus:
    """The corpus in these files and folders. Nothing but the first bytes of every file is read.

    `validation` is the share of the validation split, 0 for none and 1 for nothing else. Raises `ConfigError` for a
    setting that is none, `DataError` where no file is text, `StorageError` for what cannot be read.
    """
    if not 0 <= validation <= 1:
        raise ConfigError("not a share", got=f"validation {validation}", expected="a number from 0 to 1")
    if unit not in UNITS:
        raise UnknownName("unit of documents", unit, UNITS)
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ConfigError(
            f"unknown encoding {encoding!r}", expected="a name like utf-8, windows-1252 or utf-16"
        ) from None
    files, skipped = find([Path(path) for path in paths], encoding)
    corpus = Corpus(files, skipped, validation, unit, field, encoding)
    if not files:
        raise DataError(
            "no file of text in the corpus",
            where=", ".join(str(path) for path in paths),
            got=corpus.listed(),
            expected=".txt, .text or .jsonl, as they are or packed as .gz, .bz2 or .xz",
            do="a file with another name is read when it is named itself",
        )
    return corpus
