"""Arrays of written texts: from ranks of a search, and from JSON, today's and that of before alternatives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graftwork.targets.written_texts import WRITTEN, written_array, written_by_rank, written_from_lists


def test_a_text_stands_once_in_an_answer_at_its_best_rank() -> None:
    ranks = [[("a", -1.0, False), ("x", -0.5, True)], [("b", -2.0, False), ("y", -3.0, False)]]
    ranks += [[("a", -4.0, False), ("y", -5.0, True)], [("c", -6.0, True), ("z", -6.0, False)]]
    assert written_by_rank(ranks).tolist() == [
        ("a", -1.0, False, (("b", -2.0, False), ("c", -6.0, True))),
        ("x", -0.5, True, (("y", -3.0, False), ("z", -6.0, False))),
    ]
    assert written_by_rank([]).shape == (0,) and written_by_rank([]).dtype == WRITTEN


def test_json_gives_the_array_back_and_that_of_before_alternatives() -> None:
    array = written_array(["a", "b"], [-1.0, -2.0], [False, True], [(("c", -3.0, False),), ()])
    assert (written_from_lists(json.loads(json.dumps(array.tolist()))) == array).all()
    assert (written_from_lists([["a", -1.0, False]]) == written_array(["a"], [-1.0], [False])).all()


@pytest.mark.parametrize(
    "row", [["a", -1.0], ["a", "b", False], ["a", -1.0, False, [["b", -1.0, 1]]], [1, -1.0, False]]
)
def test_anything_else_is_refused(row: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        written_from_lists([row])
