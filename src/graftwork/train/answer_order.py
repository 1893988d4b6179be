"""The order of prediction: batches of near-equal lengths, whose results are put back into the order of the examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Encoded
from graftwork.core.method import THRESHOLDS_FACT, Logits
from graftwork.core.near_lengths import AT_LEAST
from graftwork.core.ragged import add_to_first_rows
from graftwork.machine.memory import answers_in_halves
from graftwork.train.batches import with_little_padding

TOKENS_AT_ONCE = 2048  # padding counted: short texts form large batches; one of long texts still fits the CPU caches
EXAMPLES_AT_ONCE = 512

R = TypeVar("R")


def in_batches(
    sizes: NDArray[np.int64], work: Callable[[Sequence[int]], Sequence[R]], buckets: bool = False
) -> list[R]:
    """Run `work`, which returns one result per row of a batch, and return the N results in the order of `sizes` (N,).

    Batches hold rows of near-equal sizes. A batch is divided if memory runs out and, with `buckets`, to save padding.
    """
    found: dict[int, R] = {}
    parts = with_little_padding(sizes, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE, AT_LEAST if buckets else math.inf)
    for rows in (part.tolist() for part in parts):
        found |= zip(rows, chain.from_iterable(answers_in_halves(rows, work)), strict=True)
    return [found[row] for row in range(len(sizes))]


def batches(
    encoded: Encoded, rows: NDArray[np.int64] | None = None, at_least: float = math.inf
) -> list[NDArray[np.int64]]:
    """Return the example numbers of every batch: each of `rows` (default: all) once, the longest first.

    A batch's longest sequence x its sequences is at most `TOKENS_AT_ONCE`; a longer example is a batch by itself.
    A batch is divided where that saves `at_least` positions of padding.
    """
    rows = np.arange(len(encoded)) if rows is None else rows
    sizes = encoded.lengths[rows] * encoded.sequences_of[rows]
    parts = with_little_padding(sizes, TOKENS_AT_ONCE, EXAMPLES_AT_ONCE, at_least)
    return [rows[part] for part in parts]


def in_example_order(
    facts: Mapping[str, Any], encoded: Encoded, logits: NDArray[np.float64], examples: NDArray[np.int64]
) -> Logits:
    """Put the logits of `examples` into the order of all examples, and apply the thresholds.

    `facts` are `ReadsStates.facts` of the fitted method.
    """
    whole, thresholds = encoded.whole(logits, examples, facts.get("blind")), facts.get(THRESHOLDS_FACT)
    return whole if thresholds is None else add_to_first_rows(whole, np.asarray(thresholds, dtype=np.float64))
