"""Selection bias: how far a validation score is flattered by a choice on the same rows.

A method keeps its best epoch, block or penalty on validation, so the score of what it keeps is the highest of several
lucky ones. Methods that choose among more, and differ more, are flattered more (Cawley & Talbot 2010, JMLR 11): of
methods that are compared on validation, those would be preferred.

The bias is estimated by choosing on one half of the rows: the choice scores higher on this half than on the other, on
average over random halves by the square root of 2 times the bias on all rows, because half as many rows have that much
more luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftwork.core.metric import Metric, OfSample
from graftwork.run.score_interval import RowTally

HALVES = 200  # random halves
MOST_ROWS = 5_000  # with more rows of validation the bias is not estimated: it is far below a point


def selection_bias(metric: Metric, tried: Sequence[NDArray[Any]]) -> float | None:
    """Estimate the bias of the highest of several scores on the same rows, a fraction of the metric.

    `tried` are the metric's statistics (N, K) of the predictions that were scored. None if these are fewer than two, or
    equal, or if it can't be estimated for the metric or for that many rows.
    """
    distinct = {statistics.tobytes(): statistics for statistics in tried}
    if len(distinct) < 2 or isinstance(metric, OfSample):
        return None
    rows = len(tried[0])
    if not 2 <= rows <= MOST_ROWS:
        return None
    random = np.random.default_rng(0)
    orders = random.permuted(np.tile(np.arange(rows), (HALVES, 1)), axis=1)
    halves = orders[:, : rows // 2], orders[:, rows // 2 :]
    tallies = [RowTally.of(statistics) for statistics in distinct.values()]
    here, there = (np.stack([metric.value(tally.means(half)) for tally in tallies]) for half in halves)  # (T, HALVES)
    best = here.argmax(axis=0)[None]
    gaps = np.take_along_axis(here, best, axis=0) - np.take_along_axis(there, best, axis=0)
    return max(0.0, float(gaps.mean()) / math.sqrt(2))
