"""Corpora of real text: what is read, what is left out, and tokens that another implementation gives too."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import tokenise
from graftwork.pretrain.vocabulary import BERT, Vocabulary
from graftwork.pretrain.vocabulary_training import learn
from graftwork.registry import tokenizers

pytestmark = pytest.mark.real


def test_a_folder_of_packed_and_plain_files(shared: Path, tmp_path: Path) -> None:
    corpus = open_corpus([shared / "data" / "lm_biomedical"])
    assert len(corpus.files) == 12
    assert [one.path.name for one in corpus.skipped] == ["SOURCE.md"]
    vocabulary = learn(corpus, "wordpiece", tmp_path, size=8000)
    assert vocabulary.size == 8000
    tokens = tokenise(corpus, vocabulary, tmp_path / "tokens")
    assert tokens.unknown < 0.001
    documents = tokens.train.documents + tokens.validation.documents
    assert documents == sum(1 for _ in corpus.documents())
    assert 0.017 < tokens.validation.documents / documents < 0.023
    assert tokens.duplicates > 0
    first = next(corpus.documents("train")).text
    assert tokens.train.document(0).tolist() == [*vocabulary.encode([first])[0], vocabulary.end]


@pytest.mark.parametrize("name", tokenizers.names())
def test_every_tokenizer_learns_from_real_text(name: str, shared: Path, tmp_path: Path) -> None:
    corpus = open_corpus([shared / "data" / "lm_wikitext2" / "valid.txt"])
    vocabulary = learn(corpus, name, tmp_path, size=5000)
    assert vocabulary.size == 5000
    tokens = tokenise(corpus, vocabulary, tmp_path / "tokens").train
    most = {"words": 6, "characters": 6}.get(name, 5)  # bytes that a token stands for
    assert 3 < tokens.bytes_per_token < most


def test_a_published_tokenizer(shared: Path) -> None:
    folder = shared / "fixtures" / "tokenizers" / "bert-base-uncased"
    vocabulary, theirs = Vocabulary.open(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert (vocabulary.size, vocabulary.specials) == (30_522, BERT)
    texts = ["Naïve people didn't go unbelievably far.", "漢字 and 1,024 numbers"]
    assert vocabulary.encode(texts) == [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert vocabulary.inside.sum() == sum(token.startswith("##") for token in theirs.get_vocab())
    assert math.isclose(vocabulary.inside.mean(), 0.191, abs_tol=0.001)
