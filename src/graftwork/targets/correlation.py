"""Metrics that are a correlation of numbers, computed from means over examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.targets.indicators import ratio


@dataclass(frozen=True)
class Correlation:
    """A metric: the correlation of `of(targets)` and `of(predictions)`; 0 where one of them is constant."""

    metric: str  # its name, for messages
    of: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda numbers: numbers
    least: ClassVar[float] = -1.0

    def statistics(
        self, targets: NDArray[np.generic], predictions: NDArray[np.generic], task: Task
    ) -> NDArray[np.float64]:
        """(N,) numbers -> (N, 5), the `moments` of both. Raises `ConfigError` for anything else."""
        return moments(*(self.of(require_numbers(one, task, self.metric)) for one in (targets, predictions)))

    def value(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map means of `moments` (…, 5) to correlations (…)."""
        u, v, uu, vv, uv = np.moveaxis(means, -1, 0)
        variances = np.maximum(uu - u * u, 0) * np.maximum(vv - v * v, 0)
        scale = uu * vv
        spread = np.where(variances > 1e-12 * scale, variances, 0.0)
        return np.clip(ratio(uv - u * v, np.sqrt(spread)), -1.0, 1.0)


def moments(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map (N,), (N,) to (N, 5): x, y, x², y², xy of the standardised variables; 0 for a constant one.

    Standardising changes no correlation and keeps the difference of means below from cancelling.
    """
    u, v = _standardised(x), _standardised(y)
    return np.stack([u, v, u * u, v * v, u * v], axis=1)


def require_numbers(encoded: Numbers, task: Task, metric: str) -> NDArray[np.float64]:
    """Return `encoded` (N,) as float64. Raises `ConfigError` for classes, naming the `metric` that needs numbers."""
    if isinstance(encoded, Ragged) or encoded.ndim != 1 or not np.issubdtype(encoded.dtype, np.floating):
        raise unscorable(metric, "numbers", task)
    return encoded.astype(np.float64)


def _standardised(x: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.ptp(x) == 0:
        return np.zeros_like(x)
    centred = x - x.mean()
    return np.asarray(centred / np.sqrt(np.mean(centred * centred)))
