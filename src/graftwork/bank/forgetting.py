"""What a stream of tasks does to the earlier ones, in the usual figures (Lopez-Paz & Ranzato 2017, arXiv:1706.08840;
Chaudhry et al. 2018, arXiv:1801.10112)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[float]]  # R[i][j], j <= i: the test score of task j once task i was learnt; row i has i + 1


@dataclass(frozen=True)
class Figures:
    """Over the tasks learnt so far. Fractions; the last two are None with one task, which has none before it."""

    average: float  # mean of the last row: how good the tasks are now ("average accuracy")
    backward_transfer: float | None  # mean of R[last][j] - R[j][j] over earlier tasks: below 0 is forgetting
    forgetting: float | None  # mean of the best that each earlier task ever had, less what it has now


def figures(matrix: Matrix) -> Figures:
    """Of a lower triangle with at least one row; scores of different metrics are averaged as they are."""
    last, earlier = matrix[-1], range(len(matrix) - 1)
    if not earlier:
        return Figures(last[0], None, None)
    backward = [last[j] - matrix[j][j] for j in earlier]
    lost = [max(matrix[i][j] for i in range(j, len(matrix) - 1)) - last[j] for j in earlier]
    return Figures(_mean(last), _mean(backward), _mean(lost))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
