"""Encoded classes as one boolean per class, which the metrics over classes count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import unscorable
from graftwork.core.ragged import Numbers, Ragged
from graftwork.core.task import Task


def indicators(encoded: Numbers, task: Task, metric: str) -> NDArray[np.bool_]:
    """Map classes (N,) or 0/1 labels (N, C) to bool (N, C), True where an example has the class.

    Raises `ConfigError` for numbers, naming the `metric` that cannot score them.
    """
    if not isinstance(encoded, Ragged) and encoded.ndim == 2:
        return np.asarray(encoded != 0)
    classes = require_classes(encoded, task, metric)
    return np.asarray(classes[:, None] == np.arange(len(task.labels)))


def require_classes(encoded: Numbers, task: Task, metric: str) -> NDArray[np.generic]:
    """Return `encoded` (N,), one class per example. Raises `ConfigError` for anything else."""
    if not isinstance(encoded, Ragged) and encoded.ndim == 1 and np.issubdtype(encoded.dtype, np.integer):
        return encoded
    raise unscorable(metric, "classes", task)


def ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `above / below`, 0 where `below` is 0 up to rounding."""
    defined = below > 1e-12
    return np.where(defined, above / np.where(defined, below, 1.0), 0.0)
