"""What a vocabulary knows of a text."""

from __future__ import annotations

import pytest

from graftwork.pretrained.known_words import KnownWords, pieces


def read(text: str, *words: str) -> tuple[list[str], int]:
    found = KnownWords({word: row for row, word in enumerate(words)}).read(text)
    return [words[row] for row in found.rows], found.unknown


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        (("don't", "do", "n't"), ["don't"]),
        (("do", "n't", "don", "'", "t"), ["do", "n't"]),
        (("don", "'", "t"), ["don", "'", "t"]),
        (("don", "t"), ["don", "t"]),
    ],
)
def test_a_vocabulary_s_own_way_of_cutting_is_found(vocabulary: tuple[str, ...], words: list[str]) -> None:
    assert read("don't", *vocabulary) == (words, 0)
    assert read("don\N{RIGHT SINGLE QUOTATION MARK}t", *vocabulary) == (words, 0)
    assert read("“don\N{RIGHT SINGLE QUOTATION MARK}t”,", *vocabulary) == (words, 0)


def test_a_word_is_looked_up_as_it_stands_and_then_in_lower_case() -> None:
    assert read("The US said the us", "us", "US", "the") == (["the", "US", "the", "us"], 1)


def test_most_is_covered_and_then_by_the_fewest_words() -> None:
    assert read("state-of-the-art", "state", "of", "the", "art", "-", "state-of-the-art") == (["state-of-the-art"], 0)
    assert read("(well-known).", "well", "known", "well-known", ".") == (["well-known", "."], 0)
    assert read("3.5 1,000,", "3.5", "1,000") == (["3.5", "1,000"], 0)
    assert read("3.5 7", "3", ".", "5") == (["3", ".", "5"], 1)
    assert read("cafe\N{COMBINING ACUTE ACCENT}", "café") == (["café"], 0)
    assert read("he'll", "he", "'ll", "'") == (["he", "'ll"], 0)
    assert read("anti-war", "anti", "war") == (["anti", "war"], 0)


def test_unknown_words_are_counted_and_marks_are_not() -> None:
    assert read("a qux ... «b»", "a") == (["a"], 2)
    assert read("", "a") == ([], 0)


def test_words_within_a_stretch_of_an_unspaced_script_are_found() -> None:
    assert read("我的银行卡丢了", "银行卡", "丢", "请") == (["银行卡", "丢"], 3)
    assert read("请问，银行卡？", "银行", "卡", "请", "银行卡", "，") == (["请", "，", "银行卡"], 1)
    assert read("กรุงเทพมหานครใหญ่", "กรุงเทพมหานคร") == (["กรุงเทพมหานคร"], 3)
    assert read("T恤很便宜 T恤", "T恤", "便宜") == (["T恤", "便宜", "T恤"], 1)
    assert read("मेरा कार्ड", "कार्ड", "र") == (["कार्ड"], 1), "no letter of a word that its mark belongs to"


def test_stretches_of_unspaced_scripts_are_read_whole_where_they_were() -> None:
    rows = {"银行卡": 0, "我的银行卡": 1, "abc": 2}
    before, now = KnownWords(rows, unspaced_apart=False), KnownWords(rows)
    assert before.read("银行卡，我的银行卡丢了 abc我").rows == [0] and now.read(
        "银行卡，我的银行卡丢了 abc我"
    ).rows == [0, 1, 2]
    assert before.read("我的银行卡丢了").unknown == 7, "each letter is one that is not known"


def test_pieces_are_the_chunk_cut_up() -> None:
    for chunk in ("don't", "CAN'T,", "n't", "x'y'z", "हिन्दी।", "http://a.b/c?d=1", "isn't-it"):
        assert "".join(pieces(chunk)) == chunk
    assert pieces("can't") == ["ca", "n", "'", "t"] and pieces("n't") == ["n", "'", "t"]
    assert pieces("हिन्दी।")[0] == "हिन्दी"  # combining marks are no punctuation


def test_a_long_chunk_takes_no_time_to_speak_of() -> None:
    assert read("a-" * 20_000, "a", "-") == (["a", "-"] * 20_000, 0)
