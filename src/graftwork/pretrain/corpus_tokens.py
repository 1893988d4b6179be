"""The tokenised corpus: each split's token ids end to end in a memory-mapped file, computed once and cached.

A folder per corpus and vocabulary, named by the hash of both: `train.ids` and `validation.ids` (uint16, or uint32 from
65,537 tokens on), `….starts` (the first position of each document, int64) and `tokens.json` with the counts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graftwork.core.gathered import gathered
from graftwork.data.distinct import distinct
from graftwork.errors import StorageError
from graftwork.io.cache_folder import touch
from graftwork.io.files import digest, read_json, storage_errors, sync_folder, write_json
from graftwork.io.locks import holding
from graftwork.pretrain.corpus import SPLITS, Corpus, Document
from graftwork.pretrain.corpus_cache import sweep
from graftwork.pretrain.vocabulary import Vocabulary

FORMAT = 1
ABOUT = "tokens.json"
AT_ONCE = (512, 1 << 20)  # most documents, and characters, of a batch to tokenise
SECONDS_BETWEEN_LOOKS = 0.2  # between polls while another process tokenises
KEYS_AT_ONCE = 1 << 22  # document hashes compared in memory at once, about


@dataclass(frozen=True)
class SplitTokens:
    """The token ids of one split: every document's ids followed by the end token, in corpus order."""

    ids: NDArray[np.unsignedinteger[Any]]  # (N,) memory-mapped
    starts: NDArray[np.int64]  # (documents + 1,) position of each document's first id, and N
    bytes: int  # UTF-8 bytes of the texts: the denominator of bits per byte
    words: int  # words of the texts, split at white space: the denominator of word perplexity

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1

    @property
    def bytes_per_token(self) -> float:
        """Mean bytes of text per token: nats per token / (ln 2 x this) are bits per byte."""
        return self.bytes / max(1, len(self.ids))

    def document(self, number: int) -> NDArray[np.int64]:
        """Return the ids (T,) of one document, the end token last."""
        return np.asarray(self.ids[self.starts[number] : self.starts[number + 1]], np.int64)


@dataclass(frozen=True)
class TokenisedCorpus:
    """Both splits of a tokenised corpus, and counts."""

    train: SplitTokens
    validation: SplitTokens
    duplicates: int  # documents equal to an earlier one; equal documents are in the same split
    unknown: float  # share of the ids that are the unknown token
    key: str  # sha256 of corpus, vocabulary and format: the identity of these ids


def tokenise(corpus: Corpus, vocabulary: Vocabulary, root: Path) -> TokenisedCorpus:
    """Return the token ids of `corpus`, read from the cache `root` or computed and stored there, in bounded memory.

    One process computes them while others wait. Raises `DataError` for text that cannot be read, `StorageError` for a
    full disk; neither an error nor an interruption leaves partial files.
    """
    key = digest({"format": FORMAT, "corpus": corpus.digest(), "vocabulary": vocabulary.revision})
    folder = root / key
    with storage_errors(root):
        root.mkdir(parents=True, exist_ok=True)
    while (found := _opened(folder, key)) is None:
        with storage_errors(root), holding(root / f".{key}.claim") as ours:
            if ours is not False:
                return _opened(folder, key) or _made(corpus, vocabulary, folder)
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return found


def _opened(folder: Path, key: str) -> TokenisedCorpus | None:
    """Open the tokens in a folder; None if there are none or they are incomplete."""
    if not (folder / ABOUT).is_file():
        return None
    try:
        about = read_json(folder / ABOUT)
        touch(folder / ABOUT)
        splits = {name: _split(folder, name, about["dtype"], about["splits"][name]) for name in SPLITS}
        return TokenisedCorpus(**splits, duplicates=about["duplicates"], unknown=about["unknown"], key=key)
    except (StorageError, OSError, ValueError, KeyError, TypeError):
        return None


def _split(folder: Path, name: str, dtype: str, counts: dict[str, int]) -> SplitTokens:
    ids, starts = _mapped(folder / f"{name}.ids", dtype), _mapped(folder / f"{name}.starts", "<i8")
    if len(ids) != counts["tokens"] or len(starts) != counts["documents"] + 1:
        raise ValueError("torn")
    return SplitTokens(ids, starts, counts["bytes"], counts["words"])


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    """Memory-map a file; an empty file can't be mapped and gives an empty array."""
    return np.memmap(path, np.dtype(dtype), "r") if path.stat().st_size else np.zeros(0, np.dtype(dtype))


class _Growing:
    """A split being written to its files."""

    def __init__(self, ids: BinaryIO, starts: BinaryIO, dtype: str, end: int):
        self.ids, self.starts, self.dtype, self.end = ids, starts, dtype, end
        self.counts = {"tokens": 0, "documents": 0, "bytes": 0, "words": 0}

    def add(self, document: Document, ids: list[int]) -> None:
        """Append a document part; its end token is written once no more parts can follow."""
        if not document.continues:
            self._end_document()
            self.starts.write(np.array([self.counts["tokens"]], "<i8").tobytes())
            self.counts["documents"] += 1
        self._write(ids)
        self.counts["bytes"] += len(document.text.encode())
        self.counts["words"] += len(document.text.split())

    def complete(self) -> dict[str, int]:
        """Write the last end token and start, sync both files and return the counts."""
        self._end_document()
        self.starts.write(np.array([self.counts["tokens"]], "<i8").tobytes())
        for stream in (self.ids, self.starts):
            stream.flush()
            os.fsync(stream.fileno())
        return self.counts

    def _end_document(self) -> None:
        if self.counts["documents"]:
            self._write([self.end])

    def _write(self, ids: list[int]) -> None:
        self.ids.write(np.array(ids, self.dtype).tobytes())
        self.counts["tokens"] += len(ids)


def _made(corpus: Corpus, vocabulary: Vocabulary, folder: Path) -> TokenisedCorpus:
    _make(corpus, vocabulary, folder)
    found = _opened(folder, folder.name)
    if found is None:
        raise StorageError("the tokens changed while they were read", where=str(folder), do="run it again")
    return found


def _make(corpus: Corpus, vocabulary: Vocabulary, folder: Path) -> None:
    dtype = "<u2" if vocabulary.size <= 1 << 16 else "<u4"
    unk, unknown = vocabulary.unk, 0
    with _new_folder(folder) as part, storage_errors(folder), contextlib.ExitStack() as opened:

        def new(name: str) -> BinaryIO:
            return opened.enter_context((part / name).open("wb"))

        keys = new("keys")
        growing = {name: _Growing(new(f"{name}.ids"), new(f"{name}.starts"), dtype, vocabulary.end) for name in SPLITS}
        for batch in gathered(corpus.documents(), lambda one: len(one.text), AT_ONCE[1], AT_ONCE[0]):
            for document, ids in zip(batch, vocabulary.encode([one.text for one in batch]), strict=True):
                growing[document.split].add(document, ids)
                unknown += ids.count(unk)
                if not document.continues:
                    keys.write(document.key.to_bytes(8, "little"))
        counts = {name: split.complete() for name, split in growing.items()}
        corpus.require_unchanged()
        keys.flush()
        about = {
            "format": FORMAT,
            "dtype": dtype,
            "splits": counts,
            "duplicates": _duplicates(part / "keys"),
            "unknown": unknown / max(1, sum(split["tokens"] for split in counts.values())),
        }
        (part / "keys").unlink()
        write_json(part / ABOUT, about)


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder, renamed to `folder` at the block's end, removed on an error. Only its owner can read it."""
    with storage_errors(folder):
        sweep(folder.parent)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            yield part
            sync_folder(part)
            if _opened(folder, folder.name) is None:  # an incomplete folder may be in the way
                shutil.rmtree(folder, ignore_errors=True)
            try:
                os.replace(part, folder)
            except OSError as error:  # without file locks, another process may have been first
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _duplicates(path: Path) -> int:
    """Count the hashes of a file that equal an earlier one, with a share of them in memory at a time."""
    keys = _mapped(path, "<u8")
    shares = len(keys) // KEYS_AT_ONCE + 1
    found = 0
    for share in range(shares):
        own = [block[block % shares == share] for block in np.array_split(keys, shares)]
        found += len(distinct(np.concatenate(own)))
    return len(keys) - found
