"""Word and character accuracy, against jiwer and by hand."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from graftwork.core.metric import score
from graftwork.core.task import Task
from graftwork.errors import ConfigError
from graftwork.registry import kinds, metrics
from graftwork.targets.text_scores import edit_distance, normalised
from graftwork.units import named_scores

KIND = kinds.get("generation")
TASK = Task("t", Path(), kind="generation")
WORDS = ("the", "Cat", "sat.", "mat", "don't", "well-known", "Straße", "—", "12", "它", "a")


def reached(metric: str, rows: list[tuple[str, ...]], texts: list[str]) -> float:
    found = KIND.encode([(text,) for text in texts], TASK)
    return score(metrics.get(metric), KIND.encode(rows, TASK), found, TASK)


@pytest.mark.parametrize(
    ("metric", "rows", "texts", "rate"),
    [
        ("word_accuracy", [("one two three",)], ["one three"], 1 / 3),  # a word left out
        ("word_accuracy", [("one two",), ("three",)], ["one too", "three four"], 2 / 3),  # of all rows together
        ("word_accuracy", [("It's four.",)], ["its FOUR"], 0),  # case and punctuation do not count
        ("word_accuracy", [("four",)], ["4 4 4"], 3),  # errors may outnumber words
        ("word_accuracy", [("a b", "a c d")], ["a c"], 1 / 3),  # the reference with the lowest rate
        ("word_accuracy", [("one",), ("...",)], ["one", "two"], 1),  # a reference without words: what is put in counts
        ("character_accuracy", [("a bc",)], ["abd"], 2 / 4),  # the space, and a letter
    ],
)
def test_rates_by_hand(metric: str, rows: list[tuple[str, ...]], texts: list[str], rate: float) -> None:
    assert reached(metric, rows, texts) == pytest.approx(1 - rate, abs=1e-12)


def test_the_distance_is_that_of_the_textbook() -> None:
    chance = random.Random(0)
    for _ in range(100):
        one, other = ("".join(chance.choices("abc", k=chance.randint(0, 8))) for _ in range(2))
        rows = [[*range(len(other) + 1)]]
        for i, a in enumerate(one, 1):
            rows.append([i])
            for j, b in enumerate(other, 1):
                rows[i].append(min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b)))
        assert edit_distance(one, other) == rows[-1][-1]


@pytest.mark.parametrize(("metric", "theirs"), [("word_accuracy", "wer"), ("character_accuracy", "cer")])
def test_rates_are_those_of_jiwer(metric: str, theirs: str) -> None:
    jiwer = pytest.importorskip("jiwer")
    last = jiwer.ReduceToListOfListOfWords() if theirs == "wer" else jiwer.ReduceToListOfListOfChars()
    clean = [jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.RemoveMultipleSpaces(), jiwer.Strip(), last]
    told, chance = jiwer.Compose(clean), random.Random(1)
    for _ in range(20):
        drawn = [[" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(12)] for _ in range(2)]
        wanted, written = [f"{text} end" for text in drawn[0]], drawn[1]
        rate = getattr(jiwer, theirs)(wanted, written, told, told)
        assert 1 - reached(metric, [(text,) for text in wanted], written) == pytest.approx(rate, abs=1e-9)


def test_statistics_are_of_each_text() -> None:
    targets, found = KIND.encode([("one two",), ("three",)], TASK), KIND.encode([("one",), ("four",)], TASK)
    assert np.array_equal(metrics.get("word_accuracy").statistics(targets, found, TASK), [[1, 2], [1, 1]])


def test_references_of_nothing_but_punctuation_are_refused() -> None:
    with pytest.raises(ConfigError, match="word_accuracy"):
        reached("word_accuracy", [("…",)], ["word"])


def test_the_error_rate_stands_beside_the_score() -> None:
    assert (
        named_scores({"word_accuracy": 0.877, "exact_match": 0.5}) == "word_accuracy 87.7 (wer 12.3), exact_match 50.0"
    )
    told = named_scores({"word_accuracy": 0.877}, (0.8, 0.9))
    assert told == "word_accuracy 87.7 [80.0, 90.0] (wer 12.3)"


def test_normalised_texts() -> None:
    assert normalised("  Don't  STOP—now! ") == "dont stopnow"
