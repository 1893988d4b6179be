"""Word vectors in other programs' formats: GloVe text, word2vec text and binary, fastText .vec; all also packed."""

from __future__ import annotations

import contextlib
import gzip
import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import IO, cast

import numpy as np

from graftwork.data.readers.lines import read_lines
from graftwork.errors import ConfigError, DataError, clip
from graftwork.io.files import writing
from graftwork.io.gzip_files import open_unpacked
from graftwork.pretrained.word_vector_table import WordVectors

HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*(\d{1,12})[ \t]+(\d{1,12})[ \t\r]*\n")
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf)", re.IGNORECASE)
WIDEST = 100_000  # maximum dimension of a vector
LONGEST_WORD = 10_000  # bytes
LOOKED_AT = 1 << 16  # bytes read to distinguish text from binary
OF_TEXT = frozenset(range(0x20, 0x100)) | frozenset(b"\t\r\n")
FASTTEXT_MODEL, GZIP = b"\xba\x16\x4f\x2f", b"\x1f\x8b"
LINES_LOOKED_AT = 50  # without a header, most of the first lines decide the dimension of the vectors
SUFFIXES = (".txt", ".vec", ".bin")  # suffixes of written files: GloVe text, word2vec text, word2vec binary

Row = tuple[str, str, bytes]  # location, word, values as fp32 little-endian


def read_word_vectors(path: Path) -> WordVectors:
    """Read the table in a file, whose format is recognised by content. A repeated word keeps its first vector.

    Raises `StorageError`, or `DataError` with the location of the error.
    """
    with open_unpacked(path) as stream:
        start = stream.read(LOOKED_AT)
    _refuse_foreign(path, start)
    header = HEADER.match(start)
    if header is None:
        return _table(path, _text_rows(path, _width(start)), None)
    count, width = int(header[1]), int(header[2])
    if not (count and 0 < width <= WIDEST):
        raise DataError(
            "the header states no table", where=f"{path}:1", got=f"{count:,} words of {width:,} numbers",
            expected=f"at least one word, of 1 to {WIDEST:,} numbers", do="write it again",
        )  # fmt: skip
    rest = start[header.end() :]
    binary = not OF_TEXT.issuperset(rest) or not _is_text(rest.partition(b"\n")[0], width)
    rows = _binary_rows(path, header.end(), count, width) if binary else _text_rows(path, width, headed=True)
    return _table(path, rows, count)


def write_word_vectors(path: Path, vectors: WordVectors) -> None:
    """Write a table in the format of the suffix: .txt (GloVe), .vec (word2vec text), .bin (word2vec binary); also .gz.

    Values in text have enough digits to restore fp32 exactly; the same table gives the same bytes. Raises `ConfigError`
    for another suffix, `DataError` for a word that the format can't hold, `StorageError`.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in SUFFIXES:
        raise ConfigError(
            "the suffix is not one of word vectors", got=path.name, expected=f"one of {', '.join(SUFFIXES)}"
        )
    breaks = " \n" if suffix == ".bin" else "\n"
    broken = next((word for word in vectors.words if not word or any(char in word for char in breaks)), None)
    if broken is not None:
        raise DataError(
            f"the word {clip(broken)} can't be in a {suffix} file",
            where=str(path),
            do="write a folder instead, which holds any word",
        )
    with writing(path) as plain, contextlib.ExitStack() as closing:
        stream: IO[bytes] = plain
        if path.suffix == ".gz":
            stream = closing.enter_context(cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=plain, mtime=0)))
        if suffix != ".txt":
            stream.write(f"{len(vectors.words)} {vectors.width}\n".encode())
        for word, vector in zip(vectors.words, vectors.table, strict=True):
            numbers = vector.astype("<f4").tobytes() if suffix == ".bin" else " ".join(map(str, vector)).encode()
            stream.write(word.encode() + b" " + numbers + b"\n")


def _refuse_foreign(path: Path, start: bytes) -> None:
    """Raise `DataError` for a file whose first bytes show that it is no table of word vectors."""
    if not start:
        raise DataError(
            "the file is empty", where=str(path), expected="word vectors", do="check that it was written whole"
        )
    if start.startswith(FASTTEXT_MODEL):
        raise DataError(
            "this is a model in fastText's own format", where=str(path), expected="vectors of words",
            do="name the .vec file that fastText writes beside it",
        )  # fmt: skip
    if start.startswith(GZIP):
        raise DataError(
            "the file is gzip",
            where=str(path),
            expected="word vectors, or a suffix .gz",
            do=f"rename it to {path.name}.gz",
        )


def _is_text(line: bytes, width: int) -> bool:
    """Return whether a line ends in decimal numbers, at most `width`. A small binary table may look like text."""
    numbers = line.replace(b"\t", b" ").rstrip(b"\r ").rsplit(b" ", width)[1:]
    return bool(numbers) and all(map(NUMBER.fullmatch, numbers))


def _width(start: bytes) -> int:
    """Return the number of values at the end of most of the first lines; a word may itself be a number."""
    lines = start.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:LINES_LOOKED_AT]
    lines = lines[:-1] if len(lines) > 1 and len(start) == LOOKED_AT else lines
    counts: Counter[int] = Counter()
    for line in filter(None, lines):
        fields = line.replace(b"\t", b" ").rstrip(b"\r ").split(b" ")[1:]
        counts[len(list(takewhile(NUMBER.fullmatch, reversed(fields))))] += 1
    return max(counts, key=counts.__getitem__, default=0)


def _text_rows(path: Path, width: int, headed: bool = False) -> Iterator[Row]:
    """Yield a word and its `width` values from every line, after a header if there is one.

    A word may contain spaces. If only numbers follow a line's first space, but more than `width`, it is an error.
    """
    for number, line in read_lines(path):
        if number == 1 and headed:
            continue
        where, stripped = f"{path}:{number}", line.rstrip("\r\n \t").replace("\t", " ")
        word, *numbers = stripped.rsplit(" ", width) if width else [stripped]
        try:
            with np.errstate(over="ignore"):  # `_table` refuses an infinity
                values = np.array([float(text) for text in numbers]).astype("<f4")
        except ValueError:
            values = np.empty(0, "<f4")
        told = stripped[len(word) :]
        if "_" in told or not told.isascii():  # Python also parses 1_0 and digits of other scripts as numbers
            values = np.empty(0, "<f4")
        _, *more = word.split(" ")
        if not len(values) or len(values) != width or (more and all(map(NUMBER.fullmatch, map(str.encode, more)))):
            expected = f"a word and {width} numbers, a space before each" if width else "a word and numbers"
            raise DataError(
                "the line is not a word with its vector", where=where, got=clip(stripped), expected=expected,
                do="mend the line or remove it",
            )  # fmt: skip
        yield where, word, values.tobytes()


def _binary_rows(path: Path, start: int, count: int, width: int) -> Iterator[Row]:
    """Yield each word and its values; some writers end a vector with a line feed, which precedes the next word."""
    with open_unpacked(path) as stream:
        stream.read(start)
        for number in range(1, count + 1):
            where = f"{path}, word {number:,} of {count:,}"
            name = _until_space(stream)
            vector = stream.read(4 * width)
            if len(vector) < 4 * width:
                raise DataError(
                    "the file ends before its last vector", where=where, expected=f"{4 * width:,} bytes of a vector",
                    got=f"{len(vector):,}", do="it is not whole: copy it again",
                )  # fmt: skip
            try:
                yield where, name.lstrip(b"\n").decode(), vector
            except UnicodeDecodeError:
                raise DataError(
                    "the word is not UTF-8", where=where, got=clip(name.decode("latin-1")), expected="words in UTF-8",
                    do="write the file again in UTF-8",
                ) from None  # fmt: skip
        if stream.read(2).strip(b"\r\n"):
            raise DataError(
                "the file has more words than its header states", where=str(path), expected=f"{count:,} words",
                do="mend the header, or copy the file again",
            )  # fmt: skip


def _until_space(stream: IO[bytes]) -> bytes:
    """Read the bytes before the next space, and the space; fewer at the end of the file."""
    read = bytearray()
    while len(read) < LONGEST_WORD and (byte := stream.read(1)) not in (b" ", b""):
        read += byte
    return bytes(read)


def _table(path: Path, rows: Iterator[Row], stated: int | None) -> WordVectors:
    places: dict[str, int] = {}
    numbers, read = bytearray(), 0
    for where, word, vector in rows:
        read += 1
        if not np.isfinite(np.frombuffer(vector, "<f4")).all():
            raise DataError(
                f"the vector of {clip(word)} has a value that is not a number", where=where, got="an infinity or NaN",
                expected="finite numbers", do="mend the line or remove it",
            )  # fmt: skip
        if word and places.setdefault(word, len(places)) == len(numbers) // len(vector):
            numbers += vector
    if stated is not None and read != stated:
        raise DataError(
            "the file does not have the words that its header states", where=str(path), got=f"{read:,} words",
            expected=f"{stated:,}", do="if it is not whole, copy it again",
        )  # fmt: skip
    if not places:
        raise DataError(
            "no word has a vector", where=str(path), expected="a word and numbers", do="check that it was written whole"
        )
    table = np.frombuffer(numbers, "<f4").reshape(len(places), -1)
    return WordVectors(tuple(places), table.astype(np.float32, copy=False), dropped=read - len(places))
