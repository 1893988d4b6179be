"""The figures of a stream, on numbers worked out by hand."""

from __future__ import annotations

import pytest

from graftwork.bank.forgetting import Figures, figures


def test_one_task_has_none_before_it() -> None:
    assert figures([[0.75]]) == Figures(0.75, None, None)


def test_what_is_lost_and_what_is_won() -> None:
    matrix = [[0.9], [0.5, 0.8], [0.6, 0.9, 0.7]]
    found = figures(matrix)
    assert found.average == pytest.approx((0.6 + 0.9 + 0.7) / 3)
    assert found.backward_transfer == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)
    assert found.forgetting == pytest.approx(((0.9 - 0.6) + (0.8 - 0.9)) / 2)


def test_forgetting_is_measured_from_the_best_a_task_ever_had() -> None:
    matrix = [[0.5], [0.9, 0.8], [0.5, 0.8, 0.7]]
    found = figures(matrix)
    assert found.backward_transfer == pytest.approx(0.0)
    assert found.forgetting == pytest.approx((0.9 - 0.5) / 2)


def test_tasks_that_stay_as_they_are_forget_nothing() -> None:
    scores = [0.9, 0.4, 0.7]
    assert figures([scores[: i + 1] for i in range(3)]) == Figures(pytest.approx(2.0 / 3), 0.0, 0.0)
