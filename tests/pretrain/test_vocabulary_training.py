"""Learning a vocabulary: once, from the train split, and no larger than the corpus supports."""

from __future__ import annotations

from pathlib import Path

import pytest

from graftwork.errors import ConfigError, DataError, UnknownName
from graftwork.pretrain.corpus import Corpus, open_corpus
from graftwork.pretrain.vocabulary_training import TextSample, learn
from graftwork.registry import tokenizers


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "a.txt").write_text("\n".join(f"common words and rare{number} ones" for number in range(2000)))
    return open_corpus([tmp_path / "a.txt"], validation=0.1)


def test_it_is_learned_once(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = learn(corpus, "wordpiece", tmp_path / "cache")
    monkeypatch.setattr(Corpus, "documents", lambda *_: pytest.fail("learned again"))
    assert learn(corpus, "wordpiece", tmp_path / "cache").revision == first.revision


def test_settings_make_another_one(corpus: Corpus, tmp_path: Path) -> None:
    made = [
        learn(corpus, "bpe", tmp_path, size=300),
        learn(corpus, "bpe", tmp_path, size=310),
        learn(corpus, "bpe", tmp_path, size=300, lowercase=True),
        learn(corpus, "words", tmp_path),
    ]
    assert len({one.revision for one in made}) == 4
    assert [one.size for one in made[:3]] == [300, 310, 300]


def test_a_vocabulary_larger_than_the_corpus_supports(corpus: Corpus, tmp_path: Path) -> None:
    usual = learn(corpus, "wordpiece", tmp_path)
    with pytest.raises(ConfigError, match="does not support so large a vocabulary") as caught:
        learn(corpus, "wordpiece", tmp_path, size=50_000)
    assert f"ask for {usual.size:,} tokens or fewer" in caught.value.do
    assert learn(corpus, "wordpiece", tmp_path, size=usual.size).revision == usual.revision


def test_a_vocabulary_too_small_for_the_letters(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too small for the characters"):
        learn(corpus, "wordpiece", tmp_path, size=20)
    with pytest.raises(ConfigError, match="expected: 261 or more"):
        learn(corpus, "bpe", tmp_path, size=200)


def test_an_unknown_tokenizer(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'wordpiece'"):
        learn(corpus, "word-piece", tmp_path)


@pytest.mark.parametrize("name", tokenizers.names())
def test_what_is_wrong_in_the_corpus_is_told_whatever_reads_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(DataError, match="not UTF-8"):
        learn(open_corpus([tmp_path / "a.txt"]), name, tmp_path / "cache")
    (tmp_path / "b.txt").write_bytes(b"\n")
    with pytest.raises(DataError, match="the corpus has no text"):
        learn(open_corpus([tmp_path / "b.txt"]), name, tmp_path / "cache")


def test_a_corpus_that_changes_is_not_kept(corpus: Corpus, tmp_path: Path) -> None:
    corpus.digest()
    corpus.files[0].write_text("other text")
    with pytest.raises(DataError, match="changed"):
        learn(corpus, "words", tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_only_the_train_split_is_looked_at(corpus: Corpus) -> None:
    assert list(TextSample(corpus)) == [document.text for document in corpus.documents("train")]


def test_of_a_large_corpus_a_share_is_looked_at(corpus: Corpus) -> None:
    share = list(TextSample(corpus, limit=corpus.bytes_about() // 4))
    train = [document.text for document in corpus.documents("train")]
    assert 0.2 < len(share) / len(train) < 0.3
    assert share == [text for text in train if text in set(share)]
    assert share == list(TextSample(corpus, limit=corpus.bytes_about() // 4))
