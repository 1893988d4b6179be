"""Which sequences an example owns, and which rows of the targets a batch answers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded, WordPlaces
from graftwork.core.example import Example
from graftwork.core.ragged import Ragged, repeated
from graftwork.testing import tiny_dataset


def numbers(*listed: int) -> NDArray[np.int64]:
    return np.array(listed, dtype=np.int64)


def tokens(*lengths: int) -> list[list[int]]:
    return [[7] * length for length in lengths]


@pytest.fixture
def pairs() -> Encoded:
    """Two examples of two towers each."""
    return Encoded(tokens(3, 5, 9, 2), tokens(3, 5, 9, 2), towers=2, cut=0)


@pytest.fixture
def choices() -> Encoded:
    """Three examples with two, three and two choices, a sequence each."""
    rows = tokens(4, 5, 6, 9, 3, 8, 2)
    return Encoded(rows, rows, towers=1, cut=0, owned=numbers(2, 3, 2))


@pytest.fixture
def windows() -> Encoded:
    """One text of five words in two windows, of which the fourth word is seen in none; and one of two in one."""
    words = WordPlaces(first=[[1, 2], [1], [1, 3]], seen=[[0, 1], [4], [0, 1]], counts=numbers(5, 2))
    rows = tokens(4, 3, 5)
    return Encoded(rows, rows, towers=1, cut=0, words=words, owned=numbers(2, 1))


def test_towers_are_owned_by_number(pairs: Encoded) -> None:
    assert len(pairs) == 2 and pairs.sequences([1, 0]) == [2, 3, 0, 1]
    assert pairs.lengths.tolist() == [5, 9] and pairs.answers is None and pairs.kept == 4
    assert pairs.answered(numbers(1, 0)).tolist() == [1, 0]
    logits = np.array([[1.0], [2.0]])
    assert np.array_equal(pairs.whole(logits, numbers(1, 0)), logits[::-1])


def test_choices_are_answered_each(choices: Encoded) -> None:
    assert len(choices) == 3 and choices.lengths.tolist() == [5, 9, 8] and choices.kept == 7
    order = numbers(2, 0, 1)
    assert choices.sequences(order) == [5, 6, 0, 1, 2, 3, 4] == choices.answered(order).tolist()
    whole = choices.whole(np.array([[float(row)] for row in choices.answered(order)]), order)
    assert isinstance(whole, Ragged) and whole.tolist() == [[[0.0], [1.0]], [[2.0], [3.0], [4.0]], [[5.0], [6.0]]]


def test_choices_of_two_towers_are_half_as_many_as_sequences() -> None:
    rows = tokens(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    encoded = Encoded(rows, rows, towers=2, cut=0, owned=numbers(4, 6))
    assert encoded.answers is not None and encoded.answers.tolist() == [2, 3]
    assert encoded.answered(numbers(1)).tolist() == [2, 3, 4]


def test_words_are_answered_where_a_window_shows_them(windows: Encoded) -> None:
    order = numbers(1, 0)
    assert windows.sequences(order) == [2, 0, 1] and windows.lengths.tolist() == [4, 5]
    assert windows.answered(order).tolist() == [5, 6, 0, 1, 4] and windows.kept == 5
    whole = windows.whole(np.array([[float(row)] for row in windows.answered(order)]), order, blind=[-1.0])
    assert isinstance(whole, Ragged) and whole.flat[:, 0].tolist() == [0.0, 1.0, -1.0, -1.0, 4.0, 5.0, 6.0]


def test_a_constant_answer_has_a_row_for_each_choice() -> None:
    listed = [Example("a", {"text": "?", "choices": ("x", "y")}), Example("b", {"text": "?", "choices": ("z",) * 3})]
    rows = repeated(np.array([0.5]), listed)
    assert isinstance(rows, Ragged) and rows.counts.tolist() == [2, 3] and set(rows.flat[:, 0]) == {0.5}
    plain = repeated(np.array([0.5]), tiny_dataset().train.examples[:4])
    assert isinstance(plain, np.ndarray) and plain.shape == (4, 1)
