"""Words as numbers that keep their letters, and texts as words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import WhitespaceSplit

from graftwork.core.example import Example
from graftwork.nn.character_cnn import CharacterCNN, CharacterShape
from graftwork.nn.character_ids import character_ids, sentence_end_ids, sentence_start_ids
from graftwork.pretrained.character_words import (
    END,
    START,
    Cutting,
    SpelledReader,
    number_of,
    symbols_of,
    symbols_of_words,
)

WORDS = ("", "a", "play", "Zoë", "\0\0x", "日本語" * 20, "x" * 60, "\ud800")
READER = SpelledReader(Cutting.treebank(), max_length=8)


@pytest.mark.parametrize("word", WORDS, ids=ascii)
def test_a_number_keeps_the_letters(word: str) -> None:
    assert symbols_of(number_of(word)) == character_ids(word)


def test_words_have_numbers_of_their_own() -> None:
    assert len({number_of(word) for word in (*WORDS, "ab", "ba", "\0x")}) == len(WORDS) + 2
    assert number_of("\ud800") == number_of("")  # half of a character, which UTF-8 has no bytes for
    assert number_of("x" * 60) == number_of("x" * 48)  # what nobody can read apart
    assert symbols_of_words([START, END]).tolist() == [sentence_start_ids(), sentence_end_ids()]
    assert symbols_of_words([]).shape == (0, 50)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't think it's so.", ["I", "do", "n't", "think", "it", "'s", "so", "."]),
        ("3,500.75 (or so)—can’t", ["3,500.75", "(", "or", "so", ")", "—", "ca", "n’t"]),
        (" \n", []),
    ],
)
def test_english_is_cut_as_the_published_networks_have_read_it(text: str, words: list[str]) -> None:
    assert Cutting.treebank().words(text) == words


def test_a_tokenizer_of_the_folder_says_how_to_cut(tmp_path: Path) -> None:
    tokenizer = Tokenizer(WordLevel({"u": 0}, unk_token="u"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    cutting = Cutting.of_file(tmp_path / "tokenizer.json")
    assert cutting.words("Don't PLAY") == ["don't", "play"]
    given = SpelledReader(cutting, 8).encode([Example("x/1", {"words": ("PLAY", "it")})])
    assert given.ids == [[START, number_of("play"), number_of("it"), END]]


def test_pairs_are_apart_and_long_texts_are_cut() -> None:
    pairs = READER.encode([Example("x/1", {"text_a": "a play", "text_b": " ".join("abcdefgh")})])
    assert (pairs.towers, pairs.cut, [len(ids) for ids in pairs.ids]) == (2, 1, [4, 8])
    choices = READER.encode([Example("x/1", {"text": "a", "choices": ("b", "c", "d")})])
    assert choices.owned is not None
    assert (choices.towers, choices.owned.tolist(), len(choices.ids)) == (2, [6], 6)
    assert choices.ids[2] == [START, number_of("a"), END]
    assert choices.ids[5] == [START, number_of("d"), END]
    assert READER.encode([]).ids == []


def test_a_given_word_is_one_position() -> None:
    encoded = READER.encode([Example("x/1", {"words": ("don't", "U.S.", "<S>")})])
    assert encoded.ids == [[START, number_of("don't"), number_of("U.S."), number_of("<S>"), END]]
    assert encoded.words is not None
    assert encoded.words.first == [[1, 2, 3]]


def test_a_question_stands_before_every_window() -> None:
    words = tuple("abcdefghij")
    encoded = READER.encode([Example("x/1", {"question": "is it?", "words": words})])
    assert encoded.words is not None
    assert len(encoded.ids) > 1
    for ids in encoded.ids:
        assert ids[:5] == [START, *map(number_of, ("is", "it", "?")), END]
    seen = sorted(row for rows in encoded.words.seen for row in rows)
    assert seen == list(range(11))
    for ids, first, rows in zip(encoded.ids, encoded.words.first, encoded.words.seen, strict=True):
        assert [ids[at] for at, row in zip(first, rows, strict=True) if row] == [
            number_of(words[row - 1]) for row in rows if row
        ]


def test_a_batch_is_padded_behind() -> None:
    encoded = READER.encode([Example("x/1", {"text": "a play"}), Example("x/2", {"text": ""})])
    inputs = READER.collate(encoded, [1, 0])
    assert inputs["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert inputs["characters"][1, 2].tolist() == character_ids("play")
    assert inputs["characters"][0, 2:].sum() == 0
    assert "words" not in inputs


def test_what_fills_words_up_is_left_out_without_a_difference() -> None:
    torch.manual_seed(0)
    network = CharacterCNN(CharacterShape(4, ((1, 5), (3, 6), (7, 8)), 1, "relu"), 3).requires_grad_(False)
    short = symbols_of_words([number_of("play"), number_of("a"), START])
    words = torch.from_numpy(np.concatenate([short, np.zeros((1, 50), np.int64)]))
    whole = torch.from_numpy(
        symbols_of_words([number_of("x" * 60)])
    )  # of 50 symbols: beside it nothing can be left out
    assert network._short(words).shape[1] == 6 + 7
    assert network._short(torch.cat([words, whole])).shape[1] == 50
    torch.testing.assert_close(network(words), network(torch.cat([words, whole]))[:-1])
