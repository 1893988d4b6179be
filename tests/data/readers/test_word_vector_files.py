"""Files of word vectors: each format read and written, as gensim does, and what is wrong with bad ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graftwork.data.readers.word_vector_files import read_word_vectors, write_word_vectors
from graftwork.data.readers.word_vector_folder import open_word_vectors, read_folder, write_folder
from graftwork.errors import ConfigError, DataError, GraftworkError, IncompatibleModule, StorageError
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.testing.tiny_networks import tiny_word_vectors

WORDS = ("the", "n't", "日本", "café", "3.5", "''", ". . .", "\N{NO-BREAK SPACE}")
SMALL = tiny_word_vectors(WORDS)
FORMATS = ("v.txt", "v.vec", "v.txt.gz", "v.vec.gz")


def same(one: WordVectors, other: WordVectors) -> bool:
    return tuple(one.words) == tuple(other.words) and np.array_equal(one.table, other.table)


@pytest.mark.parametrize("name", [*FORMATS, "v.bin", "v.bin.gz"])
def test_what_is_written_is_read(name: str, tmp_path: Path) -> None:
    vectors = SMALL if ".bin" not in name else tiny_word_vectors(WORDS[:6])
    write_word_vectors(tmp_path / name, vectors)
    assert same(read_word_vectors(tmp_path / name), vectors)
    write_word_vectors(tmp_path / f"again-{name}", vectors)
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # gensim leaves a file open
@pytest.mark.parametrize("binary", [False, True])
def test_gensim_s_files_are_read_and_ours_by_gensim(binary: bool, tmp_path: Path) -> None:
    from gensim.models import KeyedVectors

    vectors = tiny_word_vectors(WORDS[:6], width=3)
    theirs = KeyedVectors(3)
    theirs.add_vectors(list(vectors.words), vectors.table)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    assert same(read_word_vectors(tmp_path / "theirs"), vectors)
    ours = tmp_path / ("ours.bin" if binary else "ours.vec")
    write_word_vectors(ours, vectors)
    opened = KeyedVectors.load_word2vec_format(str(ours), binary=binary)
    assert tuple(opened.index_to_key) == vectors.words and np.array_equal(opened.vectors, vectors.table)
    write_word_vectors(tmp_path / "ours.txt", vectors)
    opened = KeyedVectors.load_word2vec_format(str(tmp_path / "ours.txt"), binary=False, no_header=True)
    assert tuple(opened.index_to_key) == vectors.words and np.array_equal(opened.vectors, vectors.table)


def test_the_formats_of_others_vary(tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(b"2 2\nthe 1 2 \nof 3 4 \n")  # fastText ends its lines with a space
    assert read_word_vectors(file).table.tolist() == [[1, 2], [3, 4]]
    file.write_bytes(b"2 2\r\nthe 1 2\r\nof 3 -4e-1\r\n")
    assert read_word_vectors(file).words == ("the", "of")
    row = np.float32([0.1, -2]).tobytes()
    file.write_bytes(b"2 2\nthe " + row + b"of " + row)  # gensim ends no binary vector with a line feed
    assert read_word_vectors(file).words == ("the", "of")


HEADS = (b"", b"3 2\n", b"\xef\xbb\xbf3 2\n", b"3 2\t\n", b" 3 2\n", b"3\t2\r\n")
LINES = b"the 1 2\nof 3 4\n. . 5 6\n"  # GloVe has words with spaces


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("lines", [LINES, LINES.replace(b" 1 2", b"\t1 2"), LINES.replace(b"the 1 2", b"1999 1 2")])
def test_headers_and_separators_vary(head: bytes, lines: bytes, tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(head + lines)
    read = read_word_vectors(file)
    assert read.words[1:] == ("of", ". .") and read.table.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_files_are_read(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    for name, content in (("v.txt", LINES), ("v.bin", b"1 2\nthe " + np.float32([1, 2]).tobytes())):
        (tmp_path / f"{name}{suffix}").write_bytes(pack(content))
        assert read_word_vectors(tmp_path / f"{name}{suffix}").words[0] == "the"


def test_a_word_that_comes_again_keeps_its_first_vector(tmp_path: Path) -> None:
    file = tmp_path / "v.txt"
    file.write_text("a 1 2\nb 3 4\na 5 6\n 7 8\nc 9 9\n")
    read = read_word_vectors(file)
    assert read.words == ("a", "b", "c") and read.table.tolist() == [[1, 2], [3, 4], [9, 9]] and read.dropped == 2


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "text": (b"Once upon a time\nthere was\n", r"bad:1: the line is not a word with its vector"),
    "one word": (b"hello\n", "bad:1: the line is not a word with its vector"),
    "short line": (b"a 1 2\nb 3\n", r"bad:2: the line is not a word with its vector\n.*'b 3'\n.*a word and 2 numbers"),
    "first line cut": (
        b"a 1\nb 3 4\nc 5 6\n",
        r"bad:1: the line is not a word with its vector\n.*'a 1'\n.*a word and 2 numbers",
    ),
    "a number too many": (b"a 1 2\nb 3 4\nc 5 6 7\n", r"bad:3: the line is not a word with its vector"),
    "header too narrow": (
        b"2 1\na 1 2\nb 3 4\n",
        r"bad:2: the line is not a word with its vector\n.*\n.*a word and 1 numbers",
    ),
    "header too wide": (
        b"2 3\na 1 2\nb 3 4\n",
        r"bad:2: the line is not a word with its vector\n.*\n.*a word and 3 numbers",
    ),
    "long line": (b"a 1 2\nb 3 4 x\n", "bad:2: the line is not a word"),
    "not a number": (b"a 1 2\nb nan 2\n", "bad:2: the vector of 'b' has a value that is not a number"),
    "too large": (b"a 1 2\nb 1e39 2\n", "bad:2: the vector of 'b'"),
    "header too high": (b"3 2\na 1 2\nb 3 4\n", "does not have the words that its header states\n.*2 words\n.*3"),
    "header too low": (b"1 2\na 1 2\nb 3 4\n", "does not have the words"),
    "header of nothing": (b"0 5\n", "the header states no table"),
    "absurd header": (b"3 999999999\na 1 2\n", "the header states no table"),
    "not UTF-8": (b"a 1 2\ncaf\xe9 1 2\n", "bad:2: the line is not UTF-8"),
    "binary cut off": (b"2 2\nthe " + bytes(8) + b"of " + bytes(5), "word 2 of 2: the file ends before"),
    "binary too long": (
        b"1 2\nthe " + bytes(8) + b"\nof " + bytes(8),
        "the file has more words than its header states",
    ),
    "binary word": (b"1 2\nth\xff " + bytes(8), "the word is not UTF-8"),
    "binary number": (b"1 2\nthe " + np.float32([np.inf, 0]).tobytes(), "word 1 of 1: the vector of 'the'"),
    "fasttext": (b"\xba\x16\x4f\x2f" + bytes(50), "fastText's own format"),
    "gzip": (gzip.compress(b"a 1 2\n"), r"the file is gzip\n(.*\n)+.*bad.gz"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(100), "bad:1"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_refused_with_its_place(fault: str, tmp_path: Path) -> None:
    content, message = BAD[fault]
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_word_vectors(tmp_path / "bad")


def test_half_a_gzip_is_refused(tmp_path: Path) -> None:
    write_word_vectors(tmp_path / "v.txt.gz", tiny_word_vectors([f"w{n}" for n in range(9000)]))
    whole = (tmp_path / "v.txt.gz").read_bytes()
    (tmp_path / "v.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a whole gzip file"):
        read_word_vectors(tmp_path / "v.txt.gz")
    (tmp_path / "v.txt.gz").write_bytes(b"a 1 2\n")
    with pytest.raises(DataError, match="not a whole gzip file"):
        read_word_vectors(tmp_path / "v.txt.gz")


def test_what_a_format_can_t_hold_is_refused(tmp_path: Path) -> None:
    for name, word in (("v.bin", "a b"), ("v.txt", "a\nb"), ("v.vec", "")):
        with pytest.raises(DataError, match="can't be in"):
            write_word_vectors(tmp_path / name, tiny_word_vectors([word]))
    with pytest.raises(ConfigError, match=r"\.txt, \.vec, \.bin"):
        write_word_vectors(tmp_path / "v.npz", SMALL)
    with pytest.raises(DataError, match="a list of words"):
        write_folder(tmp_path / "v", tiny_word_vectors(["a\nb"]))
    assert not list(tmp_path.iterdir())


def test_a_folder_is_written_and_read(tmp_path: Path) -> None:
    write_folder(tmp_path / "v", SMALL, {"learnt_from": "nothing"})
    assert same(open_word_vectors(tmp_path / "v"), SMALL)
    (tmp_path / "v" / "words.txt").write_text("a\n")
    with pytest.raises(IncompatibleModule, match="do not belong together"):
        read_folder(tmp_path / "v")
    (tmp_path / "v" / "config.json").write_text('{"model_type": "word_vectors", "format": 2}')
    with pytest.raises(StorageError, match="another format"):
        read_folder(tmp_path / "v")
    (tmp_path / "v" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(StorageError, match="the folder holds no word vectors"):
        read_folder(tmp_path / "v")


def test_nothing_there_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "v.txt", tmp_path / "v.txt.gz"):
        with pytest.raises(GraftworkError, match="no such file"):
            open_word_vectors(path)
