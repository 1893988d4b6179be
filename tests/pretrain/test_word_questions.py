"""Ratings of pairs of words, and analogies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from graftwork.errors import DataError
from graftwork.pretrain.word_questions import Analogies, Ratings, WordScore, read_questions, score_words
from graftwork.pretrained.word_vector_table import WordVectors
from graftwork.testing.tiny_networks import tiny_word_vectors

GRID = WordVectors(  # x: royal, y: female, z: young
    ("man", "woman", "king", "queen", "boy", "girl"),
    np.array([[1, 0, 0], [1, 1, 0], [3, 0, 0.1], [2, 2, 0.1], [1, 0, 1], [1, 1, 1]], dtype=np.float32),
)
ANALOGIES = """: royal
man king woman queen
Man King prince princess

: young
# a remark
man boy woman girl
woman girl man king
"""


def write(folder: Path, text: str) -> Path:
    (folder / "asked.txt").write_text(text)
    return folder / "asked.txt"


def test_the_correlation_is_over_the_known_pairs(tmp_path: Path) -> None:
    vectors = tiny_word_vectors()
    pairs = [("good", "bad"), ("Good", "fine"), ("film", "it"), ("so", "a"), ("was", "is"), ("good", "zebra")]
    text = "# a remark\n" + "".join(f"{a}\t{b}\t{n}.5\n" for n, (a, b) in enumerate(pairs))
    (score,) = score_words(vectors, read_questions(write(tmp_path, text)))
    cosines = [vectors.similarity(*pair) for pair in pairs[:-1]]
    assert score.value == pytest.approx(spearmanr(range(5), cosines).statistic)
    assert score.low is not None and score.high is not None and score.low < score.value < score.high
    assert (score.name, score.metric, score.known, score.questions) == ("asked.txt", "spearman", 5, 6)


def test_a_perfect_ranking_is_perfect() -> None:
    pairs = [("man", other) for other in GRID.words[1:]]
    rated = [GRID.similarity(*pair) for pair in pairs]
    (score,) = score_words(GRID, Ratings("all", pairs, rated))
    assert score.value == pytest.approx(1) and score.high == pytest.approx(1)


@pytest.mark.parametrize(("pairs", "rated"), [(1, [1.0]), (5, [1.0] * 5)])
def test_too_few_or_equal_ratings_have_no_correlation(pairs: int, rated: list[float]) -> None:
    (score,) = score_words(GRID, Ratings("few", [("man", word) for word in GRID.words[1:]][:pairs], rated))
    assert (score.value, score.low, score.high, score.known) == (None, None, None, pairs)


def test_analogies_by_section_and_in_all(tmp_path: Path) -> None:
    scores = score_words(GRID, read_questions(write(tmp_path, ANALOGIES)))
    assert [(one.name, one.value, one.known, one.questions) for one in scores] == [
        ("royal", 1.0, 1, 2),
        ("young", 0.5, 2, 2),
        ("asked.txt", pytest.approx(2 / 3), 3, 4),
    ]
    assert all(one.metric == "accuracy" and 0 <= (one.low or 0) <= (one.high or 0) <= 1 for one in scores)


def test_a_section_that_nobody_knows_has_no_accuracy() -> None:
    asked = Analogies("a", {"capitals": [("Athens", "Greece", "Oslo", "Norway")]})
    assert [one.value for one in score_words(GRID, asked)] == [None, None]


def test_the_intervals_are_wilson_s_and_fieller_s() -> None:
    asked = Analogies("a", {"s": [("man", "boy", "woman", "girl")] * 5 + [("woman", "girl", "man", "king")] * 5})
    score: WordScore = score_words(GRID, asked)[0]
    assert (score.value, score.low, score.high) == (
        0.5,
        pytest.approx(0.2366, abs=1e-4),
        pytest.approx(0.7634, abs=1e-4),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no questions"),
        ("# only a remark\n", "no questions"),
        ("love\tsex\t6.77\ntiger\tcat\n", r"asked\.txt:2: not a rated pair"),
        ("love\tsex\tmuch\n", "asked.txt:1: not a rated pair"),
        (": capitals\nAthens Greece Oslo\n", r"asked\.txt:2: not an analogy\n.*got: +'Athens Greece Oslo'"),
    ],
)
def test_bad_questions_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_questions(write(tmp_path, text))
