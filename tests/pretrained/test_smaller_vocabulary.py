"""A smaller vocabulary reads the texts that it was made for as before, and any other text with what is left."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.processors import RobertaProcessing

from graftwork.backbones.tiny_text import tiny_tokenizer
from graftwork.pretrained.smaller_vocabulary import fewer_tokens
from graftwork.testing.tiny_writers import PIECES

TEXTS = ["the warm film was good", "It is the same film, isn't it?", "unwarmed films"]
OTHER = "another sentence was cold"


def bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["<s>", "</s>"], initial_alphabet=letters)
    tokenizer.train_from_iterator([*TEXTS, OTHER, "the filming of warmer sentences"] * 3, trainer)
    tokenizer.post_processor = RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(PIECES, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


@pytest.mark.parametrize("make", [tiny_tokenizer, bpe, unigram])
def test_texts_are_read_as_before(make: object) -> None:
    tokenizer: Tokenizer = make()  # type: ignore[operator]
    used = {number for text in TEXTS for number in tokenizer.encode(text).ids}
    smaller, kept = fewer_tokens(tokenizer, used)
    assert used <= set(kept) and len(kept) == smaller.get_vocab_size() < tokenizer.get_vocab_size()
    for text in TEXTS:
        before, after = tokenizer.encode(text), smaller.encode(text)
        assert after.tokens == before.tokens and after.offsets == before.offsets
        assert [kept[number] for number in after.ids] == before.ids
    unknown = smaller.token_to_id("[UNK]")
    assert smaller.encode(OTHER).ids and unknown not in smaller.encode(OTHER).ids
