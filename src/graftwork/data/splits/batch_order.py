"""Batches of near-equal lengths, with almost no padding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_BATCHES = 50  # batches sorted by length together: enough for equal lengths, few enough for a random order


def bucket(lengths: NDArray[np.int64], batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Return the training batches of an epoch: every index of `lengths` (N,) once, a pure function of (seed, epoch).

    Examples are shuffled, sorted by length within chunks of 50 batches, and cut into batches, which are shuffled. One
    batch is smaller if N is not a multiple of `batch_size`.
    """
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)))
    order = random.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), CHUNK_BATCHES * batch_size):
        chunk = order[start : start + CHUNK_BATCHES * batch_size]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += [chunk[cut : cut + batch_size] for cut in range(0, len(chunk), batch_size)]
    return [batches[place] for place in random.permutation(len(batches))]


def epoch_batches(
    recipe: Mapping[str, Any], seed: int, lengths: NDArray[np.int64], epoch: int
) -> list[NDArray[np.int64]]:
    """Return an epoch's batches; for a shortened epoch the first ones, a random sample as batches are shuffled."""
    return bucket(lengths, recipe["batch_size"], seed, epoch)[: recipe.get("batches_per_epoch")]
