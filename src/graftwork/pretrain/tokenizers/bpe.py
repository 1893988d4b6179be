"""Byte-level byte-pair encoding (Sennrich et al. 2016), as in GPT-2 (Radford et al. 2019); no token is unknown."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from graftwork.pretrain.vocabulary import ROBERTA, TokenizerKind, Vocabulary, with_frame_tokens
from graftwork.registry import tokenizers


def train(texts: Iterable[str], size: int, lowercase: bool) -> Vocabulary:
    """Train on pairs that occur at least twice. A word includes the space before it, also at the start of a text."""
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
    return with_frame_tokens(tokenizer, ROBERTA)


tokenizers.register("bpe")(TokenizerKind(train, lowercase=False))
