"""Division of a batch into buckets of near lengths, where that spares much padding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]  # indices of sequences in a batch
SPARED = 0.1  # minimum share of a bucket's positions that a cut into two must save,
AT_LEAST = 128  # and by default the minimum number: another forward pass has a cost of its own


def near_lengths(sizes: Places, at_least: float | None = None) -> list[Places]:
    """Divide sequences of these lengths (S,) into buckets, shortest first; each index once, ascending within a bucket.

    A cut spares at least `at_least` positions (default: `AT_LEAST`). A pure function of the lengths.
    """
    least = AT_LEAST if at_least is None else at_least
    return [np.sort(bucket) for bucket in _cut(sizes, np.argsort(sizes, kind="stable"), least)]


def tower_buckets(sizes: Places, towers: int) -> list[Places]:
    """Divide the sequences of a batch by `near_lengths` if an example has several (`towers`), of unlike lengths.

    One bucket if `towers` is 1: batches are of near-equal lengths then.
    """
    return [np.arange(len(sizes))] if towers == 1 else near_lengths(sizes)


def _cut(sizes: Places, order: Places, at_least: float) -> list[Places]:
    """Cut `order`, indices by ascending size, recursively where it saves most padding, while it saves enough."""
    ordered = sizes[order]
    spared = np.arange(1, len(order)) * (ordered[-1] - ordered[:-1])  # positions saved by a cut after 1, 2, …
    best = int(spared.argmax()) if len(spared) else 0
    if not len(spared) or spared[best] < max(at_least, SPARED * len(order) * int(ordered[-1])):
        return [order]
    return _cut(sizes, order[: best + 1], at_least) + _cut(sizes, order[best + 1 :], at_least)
