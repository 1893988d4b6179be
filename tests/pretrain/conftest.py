"""A corpus of a few hundred sentences from a small grammar: enough for a tiny network to learn something from."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from graftwork.pretrain.corpus import open_corpus
from graftwork.pretrain.corpus_tokens import TokenisedCorpus, tokenise
from graftwork.pretrain.vocabulary import Vocabulary
from graftwork.pretrain.vocabulary_training import learn

WHO = ("the cat", "a small dog", "my old friend", "the teacher", "nobody", "an unhappy king")
DID = ("sleeps", "was reading", "will not answer", "has eaten", "walks slowly", "remembers")
WHAT = ("the letter", "in the garden", "a long story", "under the table", "every evening", "without a word")


def sentences(count: int, seed: int = 0) -> list[str]:
    """So many, the same for the same seed."""
    draw = random.Random(seed)
    return [
        " ".join(f"{draw.choice(WHO)} {draw.choice(DID)} {draw.choice(WHAT)} ." for _ in range(3))
        + f" {draw.randrange(10**6)}"
        for _ in range(count)
    ]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 400 lines."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join(sentences(400)) + "\n")
    return path


@pytest.fixture(scope="session")
def vocabulary(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """WordPiece of that corpus."""
    return learn(open_corpus([corpus]), "wordpiece", tmp_path_factory.mktemp("vocabularies"))


@pytest.fixture(scope="session")
def tokens(corpus: Path, vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> TokenisedCorpus:
    """Its ids, a tenth of the documents held out."""
    return tokenise(open_corpus([corpus], validation=0.1), vocabulary, tmp_path_factory.mktemp("tokens"))
