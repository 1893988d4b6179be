"""Trees of the answers to a prompt."""

from __future__ import annotations

import numpy as np

from graftwork.core.language_model import TokenTree


def test_what_answers_begin_with_is_one_node() -> None:
    tree = TokenTree.of([[5, 6, 7], [5, 6, 8], [5], [9], [5, 6, 7, 5], [9, 6, 1]])
    assert tree.tokens == (5, 6, 7, 9, 6) and tree.parents == (0, 1, 2, 0, 4)
    assert tree.wanted == ((5, 9), (6,), (7, 8), (5,), (6,), (1,))
    assert tree.paths == ((1, 2, 3), (4, 5))
    assert np.array_equal(tree.seen[2], [True, True, True, False, False])
    assert np.array_equal(tree.seen[4], [False, False, False, True, True])


def test_an_answer_has_the_chances_along_its_way() -> None:
    answers = [[5, 6, 7], [5, 8], [9], [5, 6, 7]]
    tree = TokenTree.of(answers)
    chances = [[-1.0, -2.0], [-4.0, -8.0], [-16.0]]  # behind the prompt 5 and 9, behind 5 both, behind 5 and 6 only 7
    assert tree.sums(chances) == [-21.0, -9.0, -2.0, -21.0]


def test_answers_of_one_token_are_not_read() -> None:
    tree = TokenTree.of([[3], [4], [3]])
    assert tree.tokens == () == tree.paths and tree.wanted == ((3, 4),) and tree.seen.shape == (0, 0)
