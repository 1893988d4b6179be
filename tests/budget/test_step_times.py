"""A line through the times of steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graftwork.budget.step_times import line_through, step_times


def test_a_line_through_steps() -> None:
    tokens = np.array([256.0, 512.0, 1024.0])
    assert line_through(tokens, 0.01 + 1e-4 * tokens) == (pytest.approx(0.01), pytest.approx(1e-4))
    assert line_through(tokens[:1], np.array([0.5])) == (0.0, pytest.approx(0.5 / 256))
    assert line_through(tokens, np.array([3.0, 2.0, 1.0])) == (2.0, 0.0)  # noise: never a negative time
    assert line_through(tokens, np.array([1.0, 4.0, 16.0]))[0] == 0.0


def test_the_first_step_of_a_length_is_told_from_the_others() -> None:
    def steps() -> Iterator[float]:
        yield from (9.0, 7.0)  # the first turn: the very first step can't be told from what was before it
        yield from (1.0, 2.0, 1.0, 2.0, 50.0, 2.0)  # one step was disturbed

    (a, b), more = step_times(np.cumsum(list(steps())).tolist(), [100, 200])
    assert (a, b) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.01))
    assert more == pytest.approx(5.0)
