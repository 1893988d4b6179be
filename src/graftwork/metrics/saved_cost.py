"""Saved cost: the share of the cost of the cheapest constant answer that the predictions save."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.task import Task
from graftwork.registry import metrics
from graftwork.targets.indicators import ratio, require_classes
from graftwork.targets.label_costs import cost_matrix


class SavedCost:
    """1 - mean cost / mean cost of the constant prediction that is cheapest on the same examples (Elkan 2001): 1 minus
    the normalised expected cost of Drummond & Holte 2006.

    Unlike a mean cost, it has a fixed scale and rises as predictions get better: at 1 they cost nothing, at 0 as much
    as the best constant prediction; a point is a hundredth of that cost. Scores below -1 are set to -1, so that
    useless predictions do not dominate the spread of a board. Without costs in the task, every mistake costs 1.
    """

    least = -1.0

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) classes -> (N, 1 + C): the cost of the prediction, and of predicting each class."""
        actual, predicted = (require_classes(given, task, "saved_cost") for given in (targets, predictions))
        costs = cost_matrix(task)[actual.astype(np.int64)]  # (N, C)
        return np.column_stack([costs[np.arange(len(costs)), predicted.astype(np.int64)], costs])

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """(…, 1 + C) -> (…)."""
        constant = means[..., 1:].min(axis=-1)
        return np.where(constant > 1e-12, np.maximum(1 - ratio(means[..., 0], constant), self.least), 0.0)


metrics.register("saved_cost")(SavedCost())
