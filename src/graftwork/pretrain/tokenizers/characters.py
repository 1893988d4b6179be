"""Words read by their characters (Peters et al. 2018, ELMo): ids of words, each with 50 character ids."""

from __future__ import annotations

from collections.abc import Iterable

from graftwork.pretrain.vocabulary import ELMO, TokenizerKind, Vocabulary
from graftwork.pretrain.word_level import word_level
from graftwork.registry import tokenizers


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Train a word-level vocabulary, words that occur once included: a word that is not predicted is an input too."""
    return word_level(texts, size, lowercase, ELMO, at_least=1)


tokenizers.register("characters")(TokenizerKind(train, lowercase=False, size=100_000))
