"""Numbers without their repeats: what numpy.unique gives, in a fraction of its time."""

from __future__ import annotations

import numpy as np
import pytest

from graftwork.data.distinct import distinct


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32])
@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_each_once_rising(dtype: type, rows: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 300, rows).astype(dtype)
    found = distinct(numbers)
    assert found.dtype == dtype and np.array_equal(found, np.unique(numbers))
    assert np.array_equal(distinct(np.full(rows, 7, dtype)), np.unique(np.full(rows, 7, dtype)))
