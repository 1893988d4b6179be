"""Padded token counts of the batches of a run, known before any forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.near_lengths import tower_buckets
from graftwork.core.task import Split
from graftwork.data.splits.batch_order import bucket
from graftwork.train.answer_order import batches
from graftwork.train.frozen_pass import batches_of_pass

TIMED_AT_ONCE = 64  # examples in a timed batch
Rows = NDArray[np.int64]  # indices of examples within a split


class Lengths:
    """The tokenised lengths of a data set's splits for one backbone. Everything is computed on first use."""

    def __init__(self, backbone: Backbone, splits: Mapping[str, Split]):
        self.backbone, self.splits = backbone, splits
        self._padded: dict[int, int] = {}  # longest length -> T

    @cached_property
    def encoded(self) -> dict[str, Encoded]:
        """All splits, tokenised, by name."""
        return {name: self.backbone.encode(split.examples) for name, split in self.splits.items()}

    def of_pass(self, name: str, depth: int | None) -> int:
        """Return the padded tokens of a frozen pass over a split that keeps the states at `depth` (None: none)."""
        encoded = self.encoded[name]
        passes = batches_of_pass(encoded, depth)
        return sum(len(rows) * self.padded(encoded, int(rows[0])) for rows in passes)  # longest first

    def of_epoch(self, size: int, seed: int) -> list[tuple[Rows, int]]:
        """Return the batches of a run's first epoch, each with its padded tokens; `seed` is the seed of the order."""
        encoded = self.encoded["train"]
        return [(rows, self.of_batch(encoded, rows)) for rows in bucket(encoded.lengths, size, seed, 1)]

    def of_answers(self, name: str, rows: Rows | None = None) -> int:
        """Return the padded tokens of predicting `rows` of a split (None: all) in batches of near-equal lengths."""
        encoded = self.encoded[name]
        return sum(self.of_batch(encoded, batch) for batch in batches(encoded, rows))

    def of_batch(self, encoded: Encoded, rows: Rows) -> int:
        """Return S x T of a batch of these examples, summed over the length buckets that it is computed in."""
        sequences = np.array(encoded.sequences(rows))
        sizes = np.array([len(encoded.ids[number]) for number in sequences])
        buckets = tower_buckets(sizes, encoded.towers)
        return sum(len(some) * self.padded(encoded, int(sequences[some[sizes[some].argmax()]])) for some in buckets)

    def padded(self, encoded: Encoded, longest: int) -> int:
        """Return T of a batch whose longest sequence has the index `longest`."""
        length = len(encoded.ids[longest])
        if length not in self._padded:
            self._padded[length] = self.backbone.collate(encoded, [longest])["attention_mask"].shape[1]
        return self._padded[length]

    def middling(self, name: str) -> Rows:
        """Return at most `TIMED_AT_ONCE` rows of about the median length."""
        order = np.argsort(self.encoded[name].lengths, kind="stable")
        first = max(0, (len(order) - TIMED_AT_ONCE) // 2)
        return order[first : first + TIMED_AT_ONCE]
