"""Packed files: whole ones give what they hold, torn ones and those that unpack to far more than a text are refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from graftwork.data.readers.lines import read_lines
from graftwork.data.readers.word_vector_files import read_word_vectors
from graftwork.errors import DataError
from graftwork.io import gzip_files
from graftwork.io.gzip_files import FORMATS, NotWhole, open_unpacked
from graftwork.pretrain.text_files import parts

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
OPENED: dict[str, Callable[[Path, str], IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # type: ignore[dict-item]
NOISE = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8).tobytes()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def read(path: Path) -> bytes:
    with open_unpacked(path) as stream:
        return stream.read()


def bomb(path: Path, byte: bytes, size: int) -> Path:
    """A file that holds `byte` so many times."""
    with OPENED[path.suffix](path, "wb") as stream:
        for _ in range(size >> 20):
            stream.write(byte * (1 << 20))
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_gives_what_it_holds(tmp_path: Path, suffix: str) -> None:
    pack = PACK[suffix]
    for content in (b"", b"a", b"\n" * 1000, NOISE, b"the same line\n" * 20_000):
        assert read(written(tmp_path / f"t{suffix}", pack(content))) == content
    several = pack(b"one\n") + pack(b"") + pack(NOISE) + bytes(512) + pack(b"two\n") + bytes(1024)
    assert read(written(tmp_path / f"t{suffix.upper()}", several)) == b"one\n" + NOISE + b"two\n"
    assert read(written(tmp_path / "t.txt", several)) == several


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, suffix: str) -> None:
    whole = PACK[suffix](NOISE)
    torn = [whole[:end] for end in (0, 1, 5, len(whole) // 2, len(whole) - 1)]
    for content in (*torn, NOISE, whole + b"more", whole[:1000] + b"\xff" * 8 + whole[1008:]):
        with pytest.raises(NotWhole, match=f"not a whole {FORMATS[suffix]} file"):
            read(written(tmp_path / f"t{suffix}", content))


@pytest.mark.parametrize("byte", [b"\n", b"a"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_bomb_is_refused_before_it_is_handed_on(
    tmp_path: Path, suffix: str, byte: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gzip_files, "MODEST", 4 << 20)
    monkeypatch.setattr(gzip_files, "MOST_TIMES", 20)
    path = bomb(tmp_path / f"t.txt{suffix}", byte, 10 << 20)
    handed_on = 0
    far_more = r"unpacks to far more than a text would\n.*\n.*at most 4 MiB"
    with pytest.raises(DataError, match=far_more), open_unpacked(path) as stream:
        while block := stream.read(1 << 16):
            handed_on += len(block)
    assert handed_on < 1 << 20
    with pytest.raises(DataError, match="unpacks to far more"):
        list(parts(path, "line", "text", "utf-8"))
    if suffix == ".gz":
        with pytest.raises(DataError, match="unpacks to far more"):
            list(read_lines(path))


def test_a_bomb_behind_a_real_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_files, "MODEST", 4 << 20)
    monkeypatch.setattr(gzip_files, "MOST_TIMES", 20)
    path = bomb(tmp_path / "t.gz", b"a", 20 << 20)
    path.write_bytes(gzip.compress(NOISE) + path.read_bytes())
    with pytest.raises(DataError, match="unpacks to far more"), open_unpacked(path) as stream:
        while stream.read(1 << 20):
            pass


def test_rows_that_repeat_are_read(tmp_path: Path) -> None:
    row = b"Where is my card?,card_arrival\n"
    path = written(tmp_path / "t.csv.gz", gzip.compress(row * 300_000))
    assert len(row) * 300_000 > 200 * path.stat().st_size
    assert sum(1 for _ in read_lines(path)) == 300_000


def test_word_vectors_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_files, "MODEST", 1 << 20)
    vectors = b"".join(b"w%d " % number + bytes(80_000) for number in range(60))
    path = written(tmp_path / "v.bin.gz", gzip.compress(b"60 20000\n" + vectors))
    with pytest.raises(DataError, match="unpacks to far more"):
        read_word_vectors(path)


def test_a_dictionary_of_gigabytes_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    content = lzma.compress(b"text\n", filters=filters)
    assert read(written(tmp_path / "t.xz", content)) == b"text\n"
    claims = raw_lzma_header(1 << 30) + lzma.compress(b"text\n", lzma.FORMAT_ALONE)[5:]
    with pytest.raises(NotWhole, match="asks for too much memory"):
        read(written(tmp_path / "t.xz", claims))


def raw_lzma_header(dictionary: int) -> bytes:
    """The first bytes of the older format, which state what memory reading takes."""
    return b"\x5d" + dictionary.to_bytes(4, "little")
