"""The time of a training step as a linear function of its padded tokens, fitted to timed steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def step_times(ends: Sequence[float], sizes: Sequence[int]) -> tuple[tuple[float, float], float]:
    """Fit step seconds = a + b x padded tokens to the end times of steps.

    The batches cycle through `sizes` (padded tokens). Return (a, b), and the extra seconds of a first step of a size.
    """
    taken = np.diff(ends)  # the very first step has no start time
    firsts, others = taken[: len(sizes) - 1], taken[len(sizes) - 1 :].reshape(-1, len(sizes))
    typical = np.median(others, axis=0)
    more = max(0.0, float(np.median(firsts - typical[1:]))) if len(firsts) else 0.0
    return line_through(np.array(sizes, dtype=np.float64), typical), more


def line_through(tokens: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float]:
    """Fit seconds = a + b x tokens with a >= 0 and b >= 0, weighting by relative error."""
    if len(tokens) > 1:
        b, a = np.polyfit(tokens, seconds, 1, w=1 / seconds)
        if a >= 0 and b >= 0:
            return float(a), float(b)
        if b < 0:
            return float(np.mean(seconds)), 0.0
    return 0.0, float(np.mean(seconds / tokens))
