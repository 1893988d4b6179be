"""Length buckets within a batch, for examples with several sequences of different lengths.

Without them a question would be padded to the length of its passage. Sequences are independent, so those of one batch
go through the network bucket by bucket, and their features are put back into the order of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded, Features, Inputs
from graftwork.core.near_lengths import Places, near_lengths, tower_buckets
from graftwork.nn.tracing import being_traced


def positions_of(encoded: Encoded, examples: Sequence[int]) -> int:
    """Return the number of positions of a batch of these examples, padding included."""
    sizes = np.array([len(encoded.ids[number]) for number in encoded.sequences(examples)])
    return sum(len(bucket) * int(sizes[bucket].max()) for bucket in tower_buckets(sizes, encoded.towers))


def buckets_of(mask: Tensor, towers: int) -> list[tuple[Places, int]]:
    """Return the buckets of a batch with `mask` (S, T), each with its own T."""
    if towers == 1:
        return [(np.arange(len(mask)), mask.shape[1])]
    sizes = np.array(mask.sum(dim=1).tolist(), dtype=np.int64)
    return [(bucket, int(sizes[bucket].max())) for bucket in near_lengths(sizes)]


def read_in_buckets(backbone: Backbone, inputs: Inputs, start: int, entering: Tensor | None, towers: int) -> Features:
    """Compute `backbone.features` bucket by bucket; `sequence` is empty if there is more than one bucket."""
    mask = inputs["attention_mask"]
    buckets = [] if being_traced() else buckets_of(mask, towers)
    if len(buckets) <= 1:
        return backbone.features(inputs, start, entering)
    read = [
        backbone.features(_some(inputs, bucket, length), start, None if entering is None else entering[bucket, :length])
        for bucket, length in buckets
    ]
    pooled = torch.cat([features.pooled for features in read])
    places = torch.from_numpy(np.argsort(np.concatenate([bucket for bucket, _ in buckets])))
    return Features(pooled.new_empty(0), mask.bool(), pooled[places.to(pooled.device)])


def states_in_buckets(states: Callable[[Inputs], Sequence[Tensor]], inputs: Inputs, towers: int) -> tuple[Tensor, ...]:
    """Compute `states`, L + 1 tensors (S, T, D), of a batch bucket by bucket; zero beyond a bucket's T."""
    mask = inputs["attention_mask"]
    buckets = [] if being_traced() else buckets_of(mask, towers)
    if len(buckets) <= 1:
        return tuple(states(inputs))
    whole: list[Tensor] = []
    for bucket, length in buckets:
        found = states(_some(inputs, bucket, length))
        whole = whole or [state.new_zeros(*mask.shape, state.shape[2]) for state in found]
        for filled, state in zip(whole, found, strict=True):
            filled[bucket, :length] = state
    return tuple(whole)


def _some(inputs: Inputs, bucket: Places, length: int) -> Inputs:
    """Select these sequences, cut to `length`; padding is on the right."""
    return {name: tensor[bucket, :length] for name, tensor in inputs.items()}
