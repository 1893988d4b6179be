"""Numbers per word: examples in, the same examples out, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.core.example import Example
from graftwork.core.ragged import Ragged, flat, from_lists, places, repeated

THREE = Ragged.of([[1, 2], [], [3, 4, 5]], np.int64)


def test_rows_of_each_example() -> None:
    assert THREE.flat.tolist() == [1, 2, 3, 4, 5] and THREE.counts.tolist() == [2, 0, 3]
    assert len(THREE) == 3
    assert [rows.tolist() for rows in THREE] == [[1, 2], [], [3, 4, 5]] == THREE.tolist()
    assert THREE.starts.tolist() == [0, 2, 2] and THREE.owners.tolist() == [0, 0, 2, 2, 2]
    assert list(Ragged.of([], np.int64)) == []


@pytest.mark.parametrize("chosen", [[2, 0], [1], [], [2, 2], slice(0, 2), slice(None)])
def test_some_examples_in_any_order(chosen: list[int] | slice) -> None:
    picked = np.arange(3)[chosen] if isinstance(chosen, slice) else chosen
    found = THREE[chosen if isinstance(chosen, slice) else np.array(chosen, dtype=np.int64)]
    assert found.tolist() == [THREE.tolist()[row] for row in picked]


def test_sums_over_words() -> None:
    assert THREE.sums(np.array([True, False, True, True, True])).tolist() == [1, 0, 3]


def test_places_are_stretches() -> None:
    assert places(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


def test_logits_come_back_from_json() -> None:
    logits = Ragged(np.arange(6.0).reshape(3, 2), np.array([1, 2]))
    back = from_lists(logits.tolist())
    assert isinstance(back, Ragged) and back.tolist() == logits.tolist()
    whole = from_lists([[1.0, 2.0], [3.0, 4.0]])
    assert not isinstance(whole, Ragged) and whole.shape == (2, 2)
    assert flat(whole) is whole and flat(back) is back.flat


def test_one_answer_for_all() -> None:
    answer = np.array([1.0, 2.0])
    words = [Example("a", {"words": ("x", "y")}), Example("b", {"words": ("z",)})]
    found = repeated(answer, words)
    assert isinstance(found, Ragged) and found.tolist() == [[[1, 2], [1, 2]], [[1, 2]]]
    assert repeated(answer, [Example("a", {"text": "x y"})]).tolist() == [[1, 2]]


def test_an_answer_for_every_place() -> None:
    """A place that the answer does not have is answered as its last one."""
    choices = [
        Example("a", {"text": "t", "choices": ("x", "y")}),
        Example("b", {"text": "t", "choices": ("x", "y", "z", "z")}),
    ]
    found = repeated(np.array([[1.0], [2.0], [0.0]]), choices)
    assert isinstance(found, Ragged) and found.tolist() == [[[1], [2]], [[1], [2], [0], [0]]]
