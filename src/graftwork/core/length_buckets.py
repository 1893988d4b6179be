"""Buckets within a batch: where an example has several sequences, no order of examples makes all of near-equal length.

A question would be padded to its passage, a hypothesis to its premise. Sequences do not look at each other, so those of
one batch go through the network bucket by bucket, and what is read of them is put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded, Features, Inputs

Places = NDArray[np.int64]  # of sequences in a batch
SPARED = 0.1  # share of a bucket's positions that cutting it in two must spare,
AT_LEAST = 128  # and how many: one more pass through a network takes time too


def near_lengths(sizes: Places, towers: int) -> list[Places]:
    """The buckets of sequences of these lengths (S,): every place once, in order within its bucket; short ones first.

    One bucket where `towers` is 1: whole batches are of near-equal lengths then. A pure function of the lengths.
    """
    if towers == 1:
        return [np.arange(len(sizes))]
    return [np.sort(bucket) for bucket in _cut(sizes, np.argsort(sizes, kind="stable"))]


def _cut(sizes: Places, order: Places) -> list[Places]:
    """`order`, the places of some sizes from the smallest on, cut where that spares most, as long as it is worth it."""
    ordered = sizes[order]
    spared = np.arange(1, len(order)) * (ordered[-1] - ordered[:-1])  # with so many before the cut
    best = int(spared.argmax()) if len(spared) else 0
    if not len(spared) or spared[best] < max(AT_LEAST, SPARED * len(order) * int(ordered[-1])):
        return [order]
    return _cut(sizes, order[: best + 1]) + _cut(sizes, order[best + 1 :])


def positions_of(encoded: Encoded, examples: Sequence[int]) -> int:
    """Positions of a batch of these examples, padding counted."""
    sizes = np.array([len(encoded.ids[number]) for number in encoded.sequences(examples)])
    return sum(len(bucket) * int(sizes[bucket].max()) for bucket in near_lengths(sizes, encoded.towers))


def buckets_of(mask: Tensor, towers: int) -> list[tuple[Places, int]]:
    """Those of a batch whose real positions `mask` (S, T) marks, each with its own T."""
    if towers == 1:
        return [(np.arange(len(mask)), mask.shape[1])]
    sizes = np.array(mask.sum(dim=1).tolist(), dtype=np.int64)
    return [(bucket, int(sizes[bucket].max())) for bucket in near_lengths(sizes, towers)]


def read_in_buckets(backbone: Backbone, inputs: Inputs, start: int, entering: Tensor | None, towers: int) -> Features:
    """As `backbone.features`, but that there is no `sequence` of what goes through in more than one bucket."""
    mask = inputs["attention_mask"]
    buckets = buckets_of(mask, towers)
    if len(buckets) == 1:
        return backbone.features(inputs, start, entering)
    read = [
        backbone.features(_some(inputs, bucket, length), start, None if entering is None else entering[bucket, :length])
        for bucket, length in buckets
    ]
    pooled = torch.cat([features.pooled for features in read])
    places = torch.from_numpy(np.argsort(np.concatenate([bucket for bucket, _ in buckets])))
    return Features(pooled.new_empty(0), mask.bool(), pooled[places.to(pooled.device)])


def states_in_buckets(states: Callable[[Inputs], Sequence[Tensor]], inputs: Inputs, towers: int) -> tuple[Tensor, ...]:
    """What `states` gives of a batch, L + 1 tensors (S, T, D), computed bucket by bucket; zero beyond a bucket's T."""
    mask = inputs["attention_mask"]
    buckets = buckets_of(mask, towers)
    if len(buckets) == 1:
        return tuple(states(inputs))
    whole: list[Tensor] = []
    for bucket, length in buckets:
        found = states(_some(inputs, bucket, length))
        whole = whole or [state.new_zeros(*mask.shape, state.shape[2]) for state in found]
        for filled, state in zip(whole, found, strict=True):
            filled[bucket, :length] = state
    return tuple(whole)


def _some(inputs: Inputs, bucket: Places, length: int) -> Inputs:
    """As if these sequences alone had been collated: their padding is on the right."""
    return {name: tensor[bucket, :length] for name, tensor in inputs.items()}
