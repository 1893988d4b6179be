"""How many tokens, padding included, each batch of a run will hold: known before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.length_buckets import near_lengths
from graftwork.core.task import Split
from graftwork.data.splits.batch_order import bucket
from graftwork.train.answer import batches
from graftwork.train.frozen_pass import batches_of_pass

TIMED_AT_ONCE = 64  # examples
Rows = NDArray[np.int64]  # numbers of examples within a split


class Lengths:
    """The splits of a data set as one backbone reads them. Everything is found out on first use."""

    def __init__(self, backbone: Backbone, splits: Mapping[str, Split]):
        self.backbone, self.splits = backbone, splits
        self._padded: dict[int, int] = {}  # longest length -> T

    @cached_property
    def encoded(self) -> dict[str, Encoded]:
        """Every split, tokenised."""
        return {name: self.backbone.encode(split.examples) for name, split in self.splits.items()}

    def of_pass(self, name: str, depth: int | None) -> int:
        """Tokens of one frozen pass over a split, which keeps the states at `depth` unless that is None."""
        encoded = self.encoded[name]
        passes = batches_of_pass(encoded, depth)
        return sum(len(rows) * self.padded(encoded, int(rows[0])) for rows in passes)  # longest first

    def of_epoch(self, size: int, seed: int) -> list[tuple[Rows, int]]:
        """The batches of a run's first epoch, each with its tokens; `seed` is that of the order."""
        encoded = self.encoded["train"]
        return [(rows, self.of_batch(encoded, rows)) for rows in bucket(encoded.lengths, size, seed, 1)]

    def of_answers(self, name: str, rows: Rows | None = None) -> int:
        """Tokens of answering `rows` of a split (all of them if None), in batches of near-equal lengths."""
        encoded = self.encoded[name]
        return sum(self.of_batch(encoded, batch) for batch in batches(encoded, rows))

    def of_batch(self, encoded: Encoded, rows: Rows) -> int:
        """S x T of a batch of these examples, of every bucket that it goes through in."""
        sequences = np.array(encoded.sequences(rows))
        sizes = np.array([len(encoded.ids[number]) for number in sequences])
        buckets = near_lengths(sizes, encoded.towers)
        return sum(len(some) * self.padded(encoded, int(sequences[some[sizes[some].argmax()]])) for some in buckets)

    def padded(self, encoded: Encoded, longest: int) -> int:
        """T of a batch whose longest sequence is number `longest`."""
        length = len(encoded.ids[longest])
        if length not in self._padded:
            self._padded[length] = self.backbone.collate(encoded, [longest])["attention_mask"].shape[1]
        return self._padded[length]

    def middling(self, name: str) -> Rows:
        """Rows of about the median length, few enough to be answered at once."""
        order = np.argsort(self.encoded[name].lengths, kind="stable")
        first = max(0, (len(order) - TIMED_AT_ONCE) // 2)
        return order[first : first + TIMED_AT_ONCE]
