"""Sorted distinct integers of an array."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.integer[Any])


def distinct(numbers: NDArray[T]) -> NDArray[T]:
    """Return the sorted distinct values of (N,); faster than `numpy.unique`, which hashes, if most are distinct."""
    rising = np.sort(numbers)
    first = np.ones(len(rising), dtype=np.bool_)
    np.not_equal(rising[1:], rising[:-1], out=first[1:])
    return rising[first]
