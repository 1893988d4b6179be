"""Words and tokens: every word is found at its first token, whatever the tokenizer does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from graftwork.backbones.tiny_text import MAX_LENGTH, tiny_tokenizer
from graftwork.core.backbone import Backbone
from graftwork.core.example import Example
from graftwork.core.opening import open_backbone
from graftwork.core.ragged import Ragged
from graftwork.core.transformer import TransformerBackbone

SENTENCES = [("The", "unbelievably", "good", "film"), ("It", "'s", "3.5"), ("x",)]


def examples(*sentences: tuple[str, ...]) -> list[Example]:
    return [Example(f"x/{row}", {"words": words}) for row, words in enumerate(sentences)]


@pytest.fixture
def backbone() -> Backbone:
    return open_backbone("tiny_text", precision="fp32")


def test_tokens_are_those_of_transformers(backbone: Backbone) -> None:
    outer = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), unk_token="[UNK]", pad_token="[PAD]")
    encoded = backbone.encode(examples(*SENTENCES))
    assert encoded.words is not None and encoded.towers == 1
    for row, words in enumerate(SENTENCES):
        theirs = outer(list(words), is_split_into_words=True)
        assert encoded.ids[row] == theirs["input_ids"]
        numbers = theirs.word_ids()
        assert encoded.words.first[row] == [numbers.index(word) for word in range(len(words))]
        assert encoded.words.seen[row] == list(range(len(words)))


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([" ".join(words) for words in SENTENCES] * 3, trainer)
    return tokenizer


def metaspace() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁", -2.0), ("▁x", -1.0), *((c, -3.0) for c in "xabc")], 0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "words"),
    [(byte_level(), SENTENCES[0]), (byte_level(), SENTENCES[1]), (metaspace(), ("x", "ab", "x"))],
)
def test_words_are_read_as_in_running_text(backbone: Backbone, tokenizer: Tokenizer, words: tuple[str, ...]) -> None:
    assert isinstance(backbone, TransformerBackbone)
    encoded = replace(backbone, tokenizer=tokenizer).encode(examples(words))
    text = " " + " ".join(words)
    running = tokenizer.encode(text)
    assert encoded.words is not None and encoded.ids[0] == running.ids
    begins = [running.tokens[place] for place in encoded.words.first[0]]
    assert all(token[0] in "Ġ▁" for token in begins)


def test_a_word_without_a_token_is_not_seen(backbone: Backbone) -> None:
    encoded = backbone.encode(examples(("a", "\u200b", "b"), ("good",) * (2 * MAX_LENGTH), ("c",)))
    words = encoded.words
    assert words is not None and words.seen[0] == [0, 2] and encoded.cut == 1
    assert words.counts.tolist() == [3, 2 * MAX_LENGTH, 1]
    read = sum(map(len, words.seen))
    assert words.unseen == 4 + 2 * MAX_LENGTH - read
    order = np.array([2, 0, 1])
    logits = np.arange(2.0 * read).reshape(-1, 2)
    whole = encoded.whole(logits, order, blind=[-1.0, -2.0])
    assert isinstance(whole, Ragged) and len(whole) == 3
    assert whole.tolist()[0] == [[2, 3], [-1, -2], [4, 5]] and whole.tolist()[2] == [[0, 1]]
    assert whole.flat[2 * MAX_LENGTH + 2].tolist() == [-1, -2], "cut off"


def test_only_words_are_read(backbone: Backbone) -> None:
    encoded = backbone.encode(examples(*SENTENCES))
    inputs = backbone.collate(encoded, [1, 0])
    states = backbone.states(inputs)[-1]
    read = backbone.pool(states, inputs["attention_mask"].bool(), inputs["words"])
    assert encoded.words is not None
    one, two = encoded.words.first[1], encoded.words.first[0]
    assert torch.equal(read, torch.cat([states[0, one], states[1, two]]))
    texts = backbone.encode([Example("x", {"text": "it's a text"})])
    assert texts.words is None and "words" not in backbone.collate(texts, [0])
