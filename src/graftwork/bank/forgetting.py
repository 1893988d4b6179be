"""Forgetting metrics of a stream of tasks (Lopez-Paz & Ranzato 2017, arXiv:1706.08840;
Chaudhry et al. 2018, arXiv:1801.10112)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[float]]  # R[i][j], j <= i: test score of task j after task i was learnt; row i has i + 1


@dataclass(frozen=True)
class Figures:
    """Metrics over the tasks learnt so far, as fractions; the last two are None with a single task."""

    average: float  # mean of the last row: current scores ("average accuracy")
    backward_transfer: float | None  # mean of R[last][j] - R[j][j] over earlier tasks; negative: forgetting
    forgetting: float | None  # mean over earlier tasks of best earlier score minus current score


def figures(matrix: Matrix) -> Figures:
    """Compute the metrics of a lower triangle with at least one row; different task metrics are averaged unscaled."""
    last, earlier = matrix[-1], range(len(matrix) - 1)
    if not earlier:
        return Figures(last[0], None, None)
    backward = [last[j] - matrix[j][j] for j in earlier]
    lost = [max(matrix[i][j] for i in range(j, len(matrix) - 1)) - last[j] for j in earlier]
    return Figures(_mean(last), _mean(backward), _mean(lost))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
