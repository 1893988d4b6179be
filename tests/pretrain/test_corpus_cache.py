"""What is kept of corpora: listed by use, and cleared."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graftwork.io.cache_folder import CacheEntry
from graftwork.pretrain import corpus_cache
from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_cache import cache_entries, clear, corpora_folder
from graftwork.pretrain.corpus_tokens import tokenise
from graftwork.pretrain.vocabulary_training import learn


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cache with a vocabulary and the tokens of a corpus."""
    (tmp_path / "a.txt").write_text("some words and some more words\n" * 3)
    corpus, root = open_corpus([tmp_path / "a.txt"], validation=0), tmp_path / "cache"
    tokenise(corpus, learn(corpus, "words", root), root / "tokens")
    return root


def test_listed_by_use_with_their_size(root: Path) -> None:
    [vocabulary] = (root / "vocabularies").iterdir()
    [tokens] = (root / "tokens").iterdir()
    assert {one.path for one in cache_entries(root)} == {vocabulary, tokens}
    for file in vocabulary.iterdir():
        os.utime(file, (1, 1))
    first, second = cache_entries(root)
    assert (first.path, first.used, second.path) == (vocabulary, 1, tokens)
    assert first.bytes == sum(file.stat().st_size for file in vocabulary.iterdir())
    assert tokens.stat().st_mode & 0o077 == 0


def test_what_was_used_lately_stays(root: Path) -> None:
    [tokens] = (root / "tokens").iterdir()
    for file in tokens.iterdir():
        os.utime(file, (time.time() - 1000,) * 2)
    assert [one.path for one in clear(root, 500)] == [tokens]
    assert len(cache_entries(root)) == 1
    assert len(clear(root)) == 1
    assert cache_entries(root) == [] == clear(root)


def test_using_it_counts(root: Path, tmp_path: Path) -> None:
    for one in cache_entries(root):
        for file in one.path.iterdir():
            os.utime(file, (1, 1))
    corpus = open_corpus([tmp_path / "a.txt"], validation=0)
    tokenise(corpus, learn(corpus, "words", root), root / "tokens")
    assert all(one.used > 1 for one in cache_entries(root))


def test_no_cache_is_an_empty_one(tmp_path: Path) -> None:
    assert cache_entries(corpora_folder(tmp_path / "nowhere")) == []
    assert clear(corpora_folder(tmp_path / "nowhere")) == []


def test_two_may_clear_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = cache_entries(root)

    def late(root: Path) -> list[CacheEntry]:
        """List the entries, of which another process then removes one and begins to remove another."""
        shutil.rmtree(entries[0].path)
        return entries

    monkeypatch.setattr(corpus_cache, "cache_entries", late)
    assert clear(root) == entries[1:]
    monkeypatch.undo()
    assert [*root.glob("*/*"), *root.glob("*/.*")] == [] == cache_entries(root)


def test_an_entry_that_goes_while_they_are_listed_is_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = cache_entries(root)
    listed = Path.iterdir

    def gone(path: Path) -> Iterator[Path]:
        if path == first.path:
            shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", gone)
    assert cache_entries(root) == [second]
