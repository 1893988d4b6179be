"""Pearson's correlation as a function of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task
from graftwork.targets.indicators import ratio


def moments(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map (N,), (N,) to (N, 5): x, y, x², y², xy of the standardised variables; 0 for a constant one.

    Standardising changes no correlation and keeps the difference of means below from cancelling.
    """
    u, v = _standardised(x), _standardised(y)
    return np.stack([u, v, u * u, v * v, u * v], axis=1)


def correlation(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map means of `moments` (…, 5) to correlations (…), 0 where one of the variables is constant."""
    u, v, uu, vv, uv = np.moveaxis(means, -1, 0)
    variances = np.maximum(uu - u * u, 0) * np.maximum(vv - v * v, 0)
    scale = uu * vv
    spread = np.where(variances > 1e-12 * scale, variances, 0.0)
    return np.clip(ratio(uv - u * v, np.sqrt(spread)), -1.0, 1.0)


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
