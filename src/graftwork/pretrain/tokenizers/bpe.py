"""Byte-pair encoding (Sennrich et al. 2016) of bytes, as in GPT-2 (Radford et al. 2019): nothing is unknown."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from graftwork.pretrain.vocabulary import ROBERTA, TokenizerKind, Vocabulary, framed
from graftwork.registry import tokenizers


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Pairs that occur at least twice. A word has the space before it, the first of a text too."""
    tokenizer = Tokenizer(BPE())
    if lowercase:
        tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    tokenizer.decoder = Decoder()
    trainer = BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=ROBERTA.listed,
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return framed(tokenizer, ROBERTA)


tokenizers.register("bpe")(TokenizerKind(train, lowercase=False))
