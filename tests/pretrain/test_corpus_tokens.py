"""The tokenised corpus: what its files hold, that it is made once, and what is left when it is not finished."""

from __future__ import annotations

import errno
import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftwork.errors import DataError, StorageError
from graftwork.io import locks
from graftwork.pretrain import corpus_tokens, text_files
from graftwork.pretrain.corpus import Corpus, Document, open_corpus
from graftwork.pretrain.corpus_tokens import tokenise
from graftwork.pretrain.tokenizers.words import train
from graftwork.pretrain.vocabulary import Vocabulary

WORDS = ["the", "film", "was", "good", "and", "bad", "but", "not", "long"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train([" ".join(WORDS)] * 2, 300, True)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    lines = [f"{WORDS[number % 9]} {WORDS[number % 7]} été {number // 2}" for number in range(200)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    return open_corpus([tmp_path / "a.txt"], validation=0.2)


def test_ids_in_the_order_of_the_corpus_with_an_end_after_each(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    made = tokenise(corpus, vocabulary, tmp_path / "cache")
    for name, split in (("train", made.train), ("validation", made.validation)):
        texts = [document.text for document in corpus.documents(name)]
        assert split.documents == len(texts)
        assert [split.document(number).tolist() for number in range(len(texts))] == [
            [*vocabulary.encode([text])[0], vocabulary.end] for text in texts
        ]
        assert split.bytes == sum(len(text.encode()) for text in texts)
        assert split.words == sum(len(text.split()) for text in texts)
        assert split.starts[-1] == len(split.ids)
        assert split.bytes_per_token == split.bytes / len(split.ids)
    assert made.train.ids.dtype == np.uint16
    unknown = sum(int((split.ids == vocabulary.unk).sum()) for split in (made.train, made.validation))
    assert made.unknown == unknown / (len(made.train.ids) + len(made.validation.ids))


def test_duplicates_are_counted(vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\none\none\nthree\ntwo\n")
    corpus = open_corpus([tmp_path / "a.txt"])
    assert tokenise(corpus, vocabulary, tmp_path / "cache").duplicates == 3
    monkeypatch.setattr(corpus_tokens, "KEYS_AT_ONCE", 2)
    assert tokenise(corpus, vocabulary, tmp_path / "other").duplicates == 3


def test_parts_of_a_document_are_one_document(
    vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text(" ".join(WORDS * 10) + "\nthe film\n")
    monkeypatch.setattr(text_files, "LONGEST", 50)
    made = tokenise(open_corpus([tmp_path / "a.txt"], validation=0), vocabulary, tmp_path / "cache")
    assert made.train.documents == 2
    assert vocabulary.tokens(made.train.document(0)) == [*WORDS * 10, "</s>"]
    assert vocabulary.tokens(made.train.document(1)) == ["the", "film", "</s>"]


def test_it_is_made_once_and_found_by_what_decides_it(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tokenise(corpus, vocabulary, tmp_path / "cache")
    with monkeypatch.context() as patched:
        patched.setattr(Corpus, "documents", lambda *_: pytest.fail("read again"))
        again = tokenise(corpus, vocabulary, tmp_path / "cache")
    assert again.key == first.key
    ids = np.array(first.train.ids)
    assert np.array_equal(again.train.ids, ids)
    other = train([" ".join(WORDS[:5])] * 2, 300, True)
    assert tokenise(corpus, other, tmp_path / "cache").key != first.key
    torn = tmp_path / "cache" / first.key / "train.ids"
    torn.write_bytes(torn.read_bytes()[:-2])
    assert np.array_equal(tokenise(corpus, vocabulary, tmp_path / "cache").train.ids, ids)


def test_an_empty_split_is_one_too(corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path) -> None:
    whole = open_corpus(corpus.files, validation=1)
    made = tokenise(whole, vocabulary, tmp_path / "cache")
    assert (made.train.documents, len(made.train.ids)) == (0, 0)
    assert made.validation.documents == 200


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("bad")])
def test_an_interruption_leaves_nothing(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interrupted(corpus: Corpus) -> Iterator[Document]:
        for number in range(2000):
            yield Document("the film", "train", number)
        raise error

    monkeypatch.setattr(Corpus, "documents", interrupted)
    with pytest.raises(type(error)):
        tokenise(corpus, vocabulary, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_a_full_disk_leaves_nothing(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="the disk is full"):
        tokenise(corpus, vocabulary, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_what_a_killed_process_left_is_swept(corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    old, young, growing = (root / f".{'a' * 64}.{name}" for name in ("old", "young", "growing"))
    for left in (old, young, growing):
        left.mkdir(parents=True)
        (left / "train.ids").write_bytes(b"x")
    os.utime(old / "train.ids", (0, 0))
    for folder in (old, growing):  # another process has written to the files of the second for more than a day
        os.utime(folder, (0, 0))
    tokenise(corpus, vocabulary, tmp_path / "cache")
    assert not old.exists()
    assert young.exists() and growing.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")
def test_of_two_processes_one_makes_them_and_the_other_waits(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Corpus.documents

    def slowly(corpus: Corpus, *splits: Any) -> Iterator[Document]:
        (tmp_path / f"made-by-{os.getpid()}").touch()
        time.sleep(0.5)
        yield from real(corpus, *splits)

    monkeypatch.setattr(Corpus, "documents", slowly)
    children = []
    for _ in range(2):
        child = os.fork()
        if not child:
            try:
                made = tokenise(corpus, vocabulary, tmp_path / "cache")
                os._exit(0 if made.train.documents else 1)
            finally:
                os._exit(2)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert len(list(tmp_path.glob("made-by-*"))) == 1
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_where_no_file_can_be_locked_the_first_stays(
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "try_lock", lambda handle: None)
    real, first, inode = Corpus.documents, [], []

    def overtaken(corpus: Corpus, *splits: Any) -> Iterator[Document]:
        monkeypatch.setattr(Corpus, "documents", real)
        first.append(tokenise(corpus, vocabulary, tmp_path / "cache"))
        inode.append((tmp_path / "cache" / first[0].key / "tokens.json").stat().st_ino)
        yield from real(corpus, *splits)

    monkeypatch.setattr(Corpus, "documents", overtaken)
    later = tokenise(corpus, vocabulary, tmp_path / "cache")
    (folder,) = (tmp_path / "cache").iterdir()
    assert np.array_equal(later.train.ids, first[0].train.ids)
    assert (folder / "tokens.json").stat().st_ino == inode[0]


def test_memory_does_not_grow_with_the_corpus(
    vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_tokens, "AT_ONCE", (64, 1 << 14))
    monkeypatch.setattr(corpus_tokens, "KEYS_AT_ONCE", 1 << 10)
    monkeypatch.setattr(text_files, "BLOCK", 1 << 14)
    peaks: list[float] = []
    for lines in (500, 4_000):
        path = tmp_path / f"{lines}.txt"
        path.write_text("\n".join(f"{' '.join(WORDS)} {number}" for number in range(lines)))
        corpus = open_corpus([path])
        tracemalloc.start()
        tokenise(corpus, vocabulary, tmp_path / "cache")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_wide_ids_for_a_large_vocabulary(corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path) -> None:
    class Large:
        """All that `tokenise` asks of a vocabulary."""

        size, revision, end, unk = 70_000, "large", 69_999, 1

        def encode(self, texts: list[str]) -> list[list[int]]:
            return [[69_000] for _ in texts]

    large: Any = Large()
    made = tokenise(corpus, large, tmp_path / "cache")
    assert made.train.ids.dtype == np.uint32
    assert made.train.document(0).tolist() == [69_000, 69_999]
