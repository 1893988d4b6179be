"""A corpus: text files as a stream of documents, each assigned to a split by a hash of its text."""

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
from graftwork.pretrain.corpus_files import SkippedFile, find
from graftwork.pretrain.pair_files import columns_of, text_pairs
from graftwork.pretrain.text_files import JSON_SUFFIXES, PAIR, UNITS, format_suffix, parts

VALIDATION = 0.02  # default share of the documents in the validation split
SPLITS = ("train", "validation")
SALT = b"graftwork corpus 1"
UNPACKS_TO = 3  # assumed bytes of text per compressed byte
LISTED = 5  # most files that a message names


@dataclass(frozen=True, slots=True)
class Document:
    """A text, or a part of one that is too long to be held in memory at once."""

    text: str
    split: str  # "train" or "validation"
    key: int  # 64-bit hash of the text, equal for equal texts; all parts of a document have the key of its first part,
    # and the key of a text of a pair is a hash of both texts
    continues: bool = False  # True if the previous part belongs to the same document


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus in reading order; every call of `documents` reads them from the start."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...] = ()
    validation: float = VALIDATION  # share of the documents in the validation split
    unit: str = "line"  # what is a document: "line", "paragraph" (between blank lines), "file" or "pair" (two texts)
    field: str = "text"  # the JSONL field with the text; for a table of pairs, its two columns: "source,target"
    encoding: str = "utf-8"

    def documents(self, split: str | None = None) -> Iterator[Document]:
        """Yield every non-empty document of one split or of both, one in memory at a time.

        The split of a document depends on its text alone (of parallel text, on the source), not on a seed, the order or
        its neighbours, so equal documents, or two targets of one source, are never in both. Raises `DataError` for bad
        text and at the end of a corpus without text, and `StorageError`.
        """
        empty = True
        for document in self._pairs() if self.unit == PAIR else self._texts():
            empty = False
            if split in (None, document.split):
                yield document
        if empty:
            raise DataError(
                "the corpus has no text",
                where=", ".join(map(str, self.files[:LISTED])),
                got=self.listed(),
                expected="files with text in them",
                do="name other files",
            )

    def _texts(self) -> Iterator[Document]:
        key = 0
        for path in self.files:
            for text, continues in parts(path, self.unit, self.field, self.encoding):
                key = key if continues else _key(text)
                yield Document(text, self._split(key), key, continues)

    def _pairs(self) -> Iterator[Document]:
        """Yield both texts of every pair, the source first: two documents of one split."""
        for source, target in text_pairs(self.files, self.field, self.encoding):
            split = self._split(_key(source))
            yield Document(source, split, _key(f"{source}\0{target}"))
            yield Document(target, split, _key(f"{target}\0{source}"))

    def _split(self, key: int) -> str:
        return SPLITS[key < self.validation * 2**64]

    def digest(self) -> str:
        """Return the sha256 over every file's bytes in order, which files are JSONL, and the reading settings.

        File names do not count otherwise. The files are read once and the result is cached.
        """
        return self._known[0]

    def require_unchanged(self) -> None:
        """Raise `DataError` if a file was written to after the digest was computed: the digest would not match it."""
        for path, stamp in zip(self.files, self._known[1], strict=True):
            if _stamp(path) != stamp:
                raise DataError("the file changed while it was read", where=str(path), do="run it again")

    @cached_property
    def _known(self) -> tuple[str, list[tuple[int, int]]]:
        stamps = [_stamp(path) for path in self.files]
        own = {name: getattr(self, name) for name in ("validation", "unit", "field", "encoding")}
        objects = [place for place, path in enumerate(self.files) if format_suffix(path) in JSON_SUFFIXES]
        own |= {"objects": objects} if objects else {}  # left out if empty: older digests of plain text stay valid
        if self.unit == PAIR:
            own |= {"formats": [format_suffix(path) for path in self.files], "split_by": "source"}
        return digest({"files": [file_digest(path) for path in self.files], **own}), stamps

    def bytes_about(self) -> int:
        """Estimate the bytes of text from the file sizes. Raises `StorageError`."""
        return sum(_stamp(path)[0] * (UNPACKS_TO if path.suffix.lower() in FORMATS else 1) for path in self.files)

    def listed(self) -> str:
        """Describe the files read and the skipped ones with reasons: `3 files; 1 skipped: a.png (binary…)`."""
        files = f"{len(self.files):,} {'file' if len(self.files) == 1 else 'files'}"
        if not self.skipped:
            return files
        named = ", ".join(f"{one.path} ({one.why})" for one in self.skipped[:LISTED])
        return f"{files}; {len(self.skipped):,} skipped: {named}{', …' if len(self.skipped) > LISTED else ''}"


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=SALT).digest(), "big")


def _stamp(path: Path) -> tuple[int, int]:
    """Return size in bytes and modification time in ns."""
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
    """Open the corpus in these files and folders, reading only the first bytes of every file.

    `validation` is the share of the validation split, from 0 (none) to 1 (all). Raises `ConfigError` or `UnknownName`
    for a bad setting, `DataError` if no file is text, `StorageError` for files that cannot be read.
    """
    if not 0 <= validation <= 1:
        raise ConfigError("not a share", got=f"validation {validation}", expected="a number from 0 to 1")
    if unit not in UNITS:
        raise UnknownName("unit of documents", unit, UNITS)
    if unit == PAIR:
        columns_of(field)
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
