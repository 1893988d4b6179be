"""Answers have the tokens that they have behind the whole of their prompt, and little is tokenised for that."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from graftwork.train.answer_tokens import prompt_tokens_of, tokens_after

WORDS = ["the", "film", "was", "good", "goodbye", "cold", "colder", "so", "isn't", "2000", "naïve", "映画", "a.b"]
TEXTS = [" ".join(random.Random(seed).choices(WORDS, k=20)) + ".\n\nLabel: good\n" for seed in range(200)]
SPLIT = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def learned(model: Any, trainer: Any, **parts: Any) -> Tokenizer:
    """Return a tokenizer of these parts, learned on `TEXTS`."""
    tokenizer = Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def byte_level(**options: Any) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    return learned(models.BPE(), trainer, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), **options)


def one_piece(over_words: bool = False) -> Tokenizer:
    """As Llama 2: no text is split before its pieces are joined, and a blank is put in front."""
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"])
    split: Any = None if over_words else pre_tokenizers.Metaspace()
    model = models.BPE(unk_token="<unk>", fuse_unk=True)
    tokenizer = learned(model, trainer, normalizer=normalizer, pre_tokenizer=split)
    tokenizer.pre_tokenizer = None
    return tokenizer


def newlines_behind_points() -> Tokenizer:
    """As GPT-4: line ends belong to the sign in front of them."""
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(SPLIT, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=400, show_progress=False))
    return tokenizer


def of_words(model: Any, trainer: Any) -> Tokenizer:
    return learned(model, trainer, pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())


def unsplit() -> Tokenizer:
    trainer = trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    return learned(models.Unigram(), trainer, normalizer=normalizers.Replace(" ", "▁"))


def unigram() -> Tokenizer:
    trainer = trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    return of_words(models.Unigram(), trainer)


def word_piece() -> Tokenizer:
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[UNK]"], show_progress=False)
    parts: dict[str, Any] = {"normalizer": normalizers.BertNormalizer()}
    return learned(
        models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizer=pre_tokenizers.BertPreTokenizer(), **parts
    )


def with_long_tokens() -> Tokenizer:
    """Tokens of its own that reach over blanks, on either side of where an answer begins."""
    tokenizer = byte_level()
    tokenizer.add_tokens(["film\nLabel:", "Label: good", ": so", AddedToken("<x>", lstrip=True, rstrip=True)])
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": byte_level,
    "composed": lambda: byte_level(normalizer=normalizers.NFC()),
    "line ends behind points": newlines_behind_points,
    "one piece": one_piece,
    "one piece over words": lambda: one_piece(over_words=True),
    "unigram": unigram,
    "unigram, unsplit": unsplit,
    "word pieces": word_piece,
    "long tokens": with_long_tokens,
}


class Reader:
    """The part of a `NextTokenModel` that tokenises; it counts the texts."""

    ends = (9999,)

    def __init__(self, tokenizer: Tokenizer, front: Sequence[int]):
        self.tokenizer, self.front, self.read = tokenizer, list(front), [""]

    @property
    def is_local(self) -> bool:
        return not isinstance(self.tokenizer.model, models.Unigram)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        self.read += texts
        return [self.front + one.ids for one in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def whole(reader: Any, head: str, way: str) -> list[int]:
    """The rule: the tokens of both without as many as those of the head."""
    one, both = reader.tokens([head, head + way])
    return list(both[len(one) :])


@pytest.mark.parametrize("front", [[], pytest.param([7777], marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_have_the_tokens_of_the_whole_text(kind: str, front: list[int]) -> None:
    reader: Any = Reader(KINDS[kind](), front)
    draw = random.Random(0)
    leads = ["\nLabel:", ".\n\nLabel:", " Label: so", " film", "", "\n  It was", "\tLabel\u00a0:", "<x>", " <x>", " e"]
    heads = [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) + lead for lead in leads for _ in range(12)]
    ends = [" good", " goodbye", " good\n\n", "bye", " colder it is", "\u0301 a", "\nso", "  so", " 2000", "<x>", ":"]
    ways = [draw.sample(ends, k=draw.randint(1, len(ends))) for _ in heads]
    found = tokens_after(reader, heads, reader.tokens(heads), ways)
    for head, own, tokens in zip(heads, ways, found, strict=True):
        assert tokens == [whole(reader, head, way) for way in own], head
    assert sum(map(len, ways)) > 500


@pytest.mark.parametrize("kind", ["byte-level", "one piece", "line ends behind points"])
def test_a_prompt_is_tokenised_once_for_all_of_its_answers(kind: str) -> None:
    reader: Any = Reader(KINDS[kind](), [])
    prompts = [f"{TEXTS[0]}{text} Label:" for text in ("the film was cold.", "so good", "naïve film")]
    answers = [f" {one} {other}" for one in WORDS[:10] for other in WORDS[:10]]
    asked = prompt_tokens_of(reader, prompts, [answers] * 3, end="\n\n")
    long = [text for text in reader.read if len(text) > len(TEXTS[0])]
    assert len(long) == 3 + 1 and len(reader.read) < 120
    for one, prompt in zip(asked, prompts, strict=True):
        assert one.context == reader.tokens([prompt])[0]
        assert one.continuations == [whole(reader, prompt, answer) for answer in answers]


def test_answers_with_ends_do_not_read_the_prompt_again() -> None:
    reader: Any = Reader(byte_level(), [])
    (asked,) = prompt_tokens_of(reader, ["the film was so\nLabel: "], [["good", "good film"]], end="\n\n")
    wanted = [whole(reader, "the film was so\nLabel:", f" {answer}\n\n") for answer in ("good", "good film")]
    assert asked.continuations == wanted and asked.context not in wanted


def test_a_tokenizer_that_reads_on_beyond_a_word_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reader, "is_local", True)
    reader: Any = Reader(unsplit(), [])
    for head in ("the cold colder cold colder so", *(text.rstrip(".") for text in TEXTS[:20])):
        assert tokens_after(reader, [head], reader.tokens([head]), [[" good"]]) == [[whole(reader, head, " good")]]
