"""Word-level vocabularies of words that occur at least twice, for word vectors and AWD-LSTM."""

from __future__ import annotations

from collections.abc import Iterable

from graftwork.pretrain.vocabulary import ROBERTA, TokenizerKind, Vocabulary
from graftwork.pretrain.word_level import word_level
from graftwork.registry import tokenizers


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Train a word-level vocabulary; words that it lacks are `<unk>`."""
    return word_level(texts, size, lowercase, ROBERTA, at_least=2)


tokenizers.register("words")(TokenizerKind(train, lowercase=True, size=30_000))
