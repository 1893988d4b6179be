"""Words: how a text is cut, and where its words stand."""

from __future__ import annotations

import pytest

from graftwork.core.words import cut_words, example_of, word_places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my card is lost", ["my", "card", "is", "lost"]),
        ("  It's (almost) 3.5, or 1,000!\n", ["It", "'", "s", "(", "almost", ")", "3.5", ",", "or", "1,000", "!"]),
        ("T-cell\u00a0x", ["T", "-", "cell", "x"]),
        ("1. 2", ["1", ".", "2"]),
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("a€5", ["a", "€", "5"]),
        (" \n", []),
    ],
)
def test_cut(text: str, words: list[str]) -> None:
    assert list(cut_words(text)) == words
    assert [text[start:end] for start, end in word_places(cut_words(text), text)] == words


def test_places_of_words_that_occur_in_one_another() -> None:
    assert word_places(["a", "aa", "a"], "a aa a") == [(0, 1), (2, 4), (5, 6)]
    assert word_places(["1 000", "000"], "1 000 000") == [(0, 5), (6, 9)]


def test_a_text_is_kept_beside_its_words() -> None:
    cut, given = example_of("x", "Hi, you"), example_of("y", ("Hi,", "you"))
    assert cut.inputs == {"words": ("Hi", ",", "you")} and cut.source == "Hi, you"
    assert given.inputs == {"words": ("Hi,", "you")} and given.source is None
