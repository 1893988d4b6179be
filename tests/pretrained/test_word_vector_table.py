"""Neighbours and analogies in a table of word vectors."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.errors import DataError
from graftwork.pretrained.word_vector_table import WordVectors, top

PLANE = WordVectors(
    ("king", "man", "woman", "queen", "apple", "nothing"),
    np.array([[3, 1], [1, 0], [0, 1], [1.1, 3], [-1, -1], [0, 0]], dtype=np.float32),
)


def test_neighbours_are_the_nearest_by_cosine_without_the_word_itself() -> None:
    found = PLANE.neighbours(["man"], count=3)
    assert [word for word, _ in found] == ["king", "queen", "woman"]
    assert found[0][1] == pytest.approx(3 / 10**0.5)
    assert found[0][1] == pytest.approx(PLANE.similarity("man", "king"))
    assert len(PLANE.neighbours(["man"], count=99)) == len(PLANE.words) - 1


def test_an_analogy_adds_directions() -> None:
    assert PLANE.neighbours(["king", "woman"], ["man"], count=1)[0][0] == "queen"


def test_a_vector_of_zeros_is_like_nothing() -> None:
    assert PLANE.similarity("nothing", "king") == 0
    assert np.isfinite(PLANE.directions).all()
    assert len(PLANE.neighbours(["nothing"], count=2)) == 2


def test_an_unknown_word_suggests_a_known_one() -> None:
    with pytest.raises(DataError, match="did you mean 'woman'"):
        PLANE.neighbours(["womann"])
    assert PLANE.row("KING") == 0 and PLANE.row("prince") is None


def test_of_equal_scores_the_earlier_comes_first() -> None:
    scores = np.array([1, 3, 2, 3, 2, 2], dtype=np.float32)
    assert top(scores, 4) == [1, 3, 2, 4] and top(scores, 0) == []


def test_the_digest_follows_words_and_numbers() -> None:
    other = WordVectors((*PLANE.words[:-1], "none"), PLANE.table)
    moved = WordVectors(PLANE.words, PLANE.table + np.float32(1e-3))
    assert len({PLANE.digest, other.digest, moved.digest}) == 3
    assert WordVectors(list(PLANE.words), PLANE.table.copy()).digest == PLANE.digest
