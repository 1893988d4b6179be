"""Scores of answers, against figures worked out by hand from the rules of the official evaluation."""

from __future__ import annotations

import pytest

from graftwork.targets.answer_scores import exact_match, normalised, words_f1, words_with_places

NORMALISED = [
    ("The  Broncos.", "broncos"),
    ("an A-team, the best!", "ateam best"),  # punctuation is dropped and leaves no space: no article is left in it
    ("THE theatre of a banana", "theatre of banana"),
    ("A", ""),
    ("$1,000.50 (US)", "100050 us"),
    ("Beyoncé’s “Halo”", "beyoncé’s “halo”"),  # only ASCII punctuation goes
    ("the\tthe\n an", ""),
    ("the–end", "–end"),  # a dash that is not ASCII stays, and the article before it goes
    ("L'an 2000", "lan 2000"),
    ("a.b. a_n", "ab"),  # both points and the underscore go first, and "a_n" is then an article
    ("İstanbul", "i̇stanbul"),
]


@pytest.mark.parametrize(("text", "expected"), NORMALISED)
def test_normalised(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize("text", [text for text, _ in NORMALISED] + ["ΟΔΟΣ a ΣΑΣ", ""])
def test_placed_words_are_those_of_the_normalised_text(text: str) -> None:
    found = words_with_places(text)
    assert [word for word, _, _ in found] == normalised(text).split()
    assert [normalised(text[start:end]) for _, start, end in found] == [word for word, _, _ in found]


CASES = [  # golds, found, exact match, F1
    (["Denver Broncos", "The Broncos"], "broncos", 1.0, 1.0),
    (["Denver Broncos"], "the Denver Broncos team", 0.0, 0.8),  # 2 shared; precision 2/3, recall 1
    (["in the year 1066", "1066"], "1066 AD", 0.0, 2 / 3),
    (["to be or not to be"], "be be be", 0.0, 4 / 9),  # a word counts as often as both have it
    (["seven"], "eight", 0.0, 0.0),
    (["10 000"], "10,000", 0.0, 0.0),
    (["St. John's"], "st johns", 1.0, 1.0),
    (["x", "y z"], "z", 0.0, 2 / 3),
]


@pytest.mark.parametrize(("golds", "found", "exact", "f1"), CASES)
@pytest.mark.parametrize("may_be_none", [False, True])
def test_scores(golds: list[str], found: str, exact: float, f1: float, may_be_none: bool) -> None:
    assert exact_match(golds, found, may_be_none) == exact
    assert words_f1(golds, found, may_be_none) == pytest.approx(f1)


def test_where_every_question_has_an_answer_nothing_is_never_like_anything() -> None:
    assert exact_match(["the"], "a", False) == 1 and words_f1(["the"], "a", False) == 0, "as version 1.1 scores"
    assert exact_match(["one"], "", False) == 0 and words_f1(["one"], "", False) == 0


def test_questions_that_may_have_no_answer() -> None:
    assert exact_match([], "", True) == words_f1([], "", True) == 1
    assert exact_match([], "the", True) == words_f1([], "the", True) == 1, "nothing of it counts"
    assert exact_match([], "one", True) == words_f1([], "one", True) == 0
    assert exact_match(["one"], "", True) == words_f1(["one"], "", True) == 0
    assert exact_match(["the"], "", True) == words_f1(["the"], "", True) == 1, "a gold of which nothing counts is none"
    assert exact_match(["the", "one"], "", True) == words_f1(["the", "one"], "", True) == 0, "but there is another"
    assert exact_match([], "", False) == words_f1([], "", False) == 1, "one without an answer among others"
