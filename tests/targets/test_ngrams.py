"""N-gram windows: which sentence, and what of it."""

from __future__ import annotations

import pytest

from graftwork.targets.ngrams import AnswerWindow, answer_in, best_sentence, best_window, longest_run, sentences
from graftwork.targets.passages import Gold, Golds, Passage, question_of

PASSAGE = Passage.of("Zürich lies on a lake. The Romans founded it in 15 BC, says Livy. It is large!")
QUESTION = "Who says that the Romans founded it?"


def said(window: AnswerWindow, question: str = QUESTION) -> str:
    return PASSAGE.between(*answer_in(question, PASSAGE.words, window))


def test_sentences() -> None:
    words = ["a", "b", ".", "c", "!", "?", "d"]
    assert sentences(words) == [(0, 3), (3, 5), (5, 6), (6, 7)]
    assert sentences(["a"]) == [(0, 1)] and sentences(["a", "."]) == [(0, 2)]


def test_longest_run() -> None:
    asked = ["who", "founded", "it", "in", "the", "year", "?"]
    assert longest_run(asked, ["he", "founded", "it", "in", "it", "in", "the"]) == (1, 4)
    assert longest_run(asked, ["year", "?", "x", "year", "?"]) == (0, 2)
    assert longest_run(asked, ["?", "x"]) == (0, 0), "a sign alone is no n-gram"


def test_the_longest_ngram_then_most_shared_words_then_the_first() -> None:
    words = ["x", "a", "b", ".", "c", "b", "a", ".", "a", "b", "c", "."]
    assert best_sentence(["A", "B"], words) == ((0, 4), (1, 3))
    assert best_sentence(["c", "z", "a", "b", "z"], ["a", "b", ".", "a", "b", "c", "."]) == ((3, 7), (3, 5))
    assert best_sentence(["q"], words) == ((0, 4), (0, 0))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (AnswerWindow("behind", 3), "in 15 BC"),
        (AnswerWindow("behind", 4), "in 15 BC"),  # the comma at the border is left out
        (AnswerWindow("behind", 5), "in 15 BC, says"),
        (AnswerWindow("rest"), "in 15 BC"),
        (AnswerWindow("sentence"), "The Romans founded it in 15 BC, says Livy"),
        (AnswerWindow("before", 2), "The Romans founded it in 15 BC, says Livy"),  # nothing stands before it
    ],
)
def test_windows(window: AnswerWindow, expected: str) -> None:
    assert said(window) == expected


def test_before() -> None:
    assert said(AnswerWindow("before", 2), "When did it happen: in 15 BC?") == "founded it"
    assert said(AnswerWindow("before", 1), "What is large?") == "It"


def test_the_best_window_is_chosen_on_questions() -> None:
    golds = Golds([Gold("in 15 BC", PASSAGE.text.index("in 15"))], PASSAGE)
    window, scores = best_window([question_of("x", QUESTION, PASSAGE, golds)] * 2)
    assert window == AnswerWindow("behind", 3) and scores["behind 3"] == 1 and scores["rest"] == 1
    assert scores["behind 1"] == pytest.approx(0.5) and set(scores) >= {"sentence", "before 8"}
