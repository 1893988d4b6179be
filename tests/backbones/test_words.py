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
from graftwork.core.ragged import Ragged, add_to_first_rows
from graftwork.pretrained.open_backbone import open_backbone
from graftwork.pretrained.transformer import TransformerBackbone
from graftwork.pretrained.windows import OVERLAP, QUESTION

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
    encoded = backbone.encode(examples(("a", "\u200b", "b"), ("c",)))
    words = encoded.words
    assert words is not None and words.seen == [[0, 2], [0]] and encoded.cut == 0 and words.unseen == 1
    logits = np.arange(6.0).reshape(-1, 2)
    whole = add_to_first_rows(encoded.whole(logits, np.array([1, 0]), blind=[-1.0, -2.0]), np.array([10.0, 20.0]))
    assert isinstance(whole, Ragged) and len(whole) == 2
    assert whole.tolist() == [[[12, 23], [-1, -2], [4, 5]], [[10, 21]]]


def test_a_long_text_is_read_in_windows_each_word_where_most_stands_round_it(backbone: Backbone) -> None:
    words = tuple("abcdefghijklmnopqrstuvwxyz" * 6)  # a token each
    encoded = backbone.encode(examples(("a", "b"), words, ("c",)))
    assert encoded.owned is not None and encoded.owned[[0, 2]].tolist() == [1, 1] and encoded.words is not None
    inside, shared = MAX_LENGTH - 2, MAX_LENGTH // OVERLAP
    starts = range(0, len(words) - shared, inside - shared)
    assert encoded.owned[1] == len(starts)
    for number, start in enumerate(starts):
        window = encoded.sequences([1])[number]
        assert len(encoded.ids[window]) == min(MAX_LENGTH, len(words) - start + 2)
        for position, word in zip(encoded.words.first[window], encoded.words.seen[window], strict=True):
            assert position == 1 + word - start
            room = min(word - start, min(start + inside, len(words)) - 1 - word)
            for other in starts:
                behind = min(other + inside, len(words)) - 1
                assert not other <= word <= behind or min(word - other, behind - word) <= room
    rows = np.array([2, 1, 0])
    inputs = backbone.collate(encoded, encoded.sequences(rows))
    read = backbone.features(inputs).pooled
    assert encoded.answered(rows).shape == (len(read),) == (len(words) + 3,)
    whole = encoded.whole(encoded.answered(rows)[:, None].astype(float), rows)
    assert isinstance(whole, Ragged) and whole.flat[:, 0].tolist() == list(range(len(words) + 3))


def test_a_question_stands_before_every_window(backbone: Backbone) -> None:
    words, question = ("good",) * 60, "is it a good one?"
    encoded = backbone.encode([Example("x", {"question": question, "words": words})])
    alone = backbone.encode([Example("y", {"text_a": question, "text_b": "good"})])
    assert encoded.owned is not None and encoded.owned.tolist() == [len(encoded.ids)] and encoded.words is not None
    begun = alone.types[0].index(1)
    for ids, types in zip(encoded.ids, encoded.types, strict=True):
        assert ids[:begun] == alone.ids[0][:begun] and types == [0] * begun + [1] * (len(ids) - begun)
    assert encoded.words.seen[0][:2] == [0, 1] and encoded.words.first[0][:2] == [0, begun]
    assert all(0 not in seen for seen in encoded.words.seen[1:]) and encoded.words.unseen == 0
    long = backbone.encode([Example("x", {"question": "g " * 100, "words": words})])
    assert long.cut == 1 and long.types[0].index(1) == MAX_LENGTH // QUESTION + 2
    short = backbone.encode([Example("x", {"question": "go " * 31, "words": ("good",)})])
    assert short.cut == 0


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
