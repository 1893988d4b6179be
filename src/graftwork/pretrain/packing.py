"""Packing of a corpus's ids into rows of equal length; the rows of a step are a pure function of seed and step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.errors import DataError
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.train.seeds import derive

ROUNDS = 6  # of the Feistel network; four or more give a pseudo-random permutation


@dataclass(frozen=True)
class PackedRows:
    """Rows of `length` ids, cut from the concatenated ids of all documents: a row may span several documents.

    With `start` a row's first id is `start`, with `end` its last is `end`; both count towards `length`.
    """

    tokens: SplitTokens
    length: int  # T
    start: int | None = None
    end: int | None = None

    @property
    def content(self) -> int:
        """The number of ids of a row that come from the corpus."""
        return self.length - (self.start is not None) - (self.end is not None)

    def __len__(self) -> int:
        """The number of rows of an epoch; the remainder of the corpus, shorter than a row, is not used."""
        return len(self.tokens.ids) // self.content

    def steps(self, batch: int) -> int:
        """Return the number of whole batches of an epoch."""
        return len(self) // batch

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return the rows (B, T) int64 of step `step`, counted from 0.

        Every row comes once per epoch, in an order that depends on `seed` and the epoch; a batch may span two epochs.
        Raises `DataError` for a corpus with fewer rows than a batch.
        """
        count = len(self)
        if batch > count:
            raise _too_small(self.tokens, batch, self.content)
        epochs, places = np.divmod(np.arange(step * batch, (step + 1) * batch, dtype=np.int64), count)
        chosen = np.empty(batch, np.int64)
        for epoch in np.unique(epochs):
            own = epochs == epoch
            chosen[own] = shuffled(places[own], count, derive(seed, f"rows {epoch}"))
        return self.at(chosen)

    def at(self, numbers: NDArray[np.int64]) -> Tensor:
        """Return the rows (B, T) int64 of these indices in the corpus."""
        out = np.empty((len(numbers), self.length), np.int64)
        first = int(self.start is not None)
        for place, number in enumerate(numbers):
            begin = int(number) * self.content
            out[place, first : first + self.content] = self.tokens.ids[begin : begin + self.content]
        if self.start is not None:
            out[:, 0] = self.start
        if self.end is not None:
            out[:, -1] = self.end
        return torch.from_numpy(out)


@dataclass(frozen=True)
class Streams:
    """The ids cut into as many streams as a batch has rows, read in parallel in corpus order.

    A step continues where the previous one ended, so that a network can carry its state from step to step.
    """

    tokens: SplitTokens
    length: int  # T, ids by which a step advances in each stream

    @property
    def content(self) -> int:
        """The number of ids of a row that are predicted; each id of the corpus is predicted once."""
        return self.length

    def __len__(self) -> int:
        """The approximate number of rows of an epoch: batches of up to that size have at least one step."""
        return len(self.tokens.ids) // (self.length + 1)

    def steps(self, batch: int) -> int:
        """Return the number of whole steps of an epoch; the remainder of each stream is not used."""
        return max(0, (len(self.tokens.ids) // batch - 1) // self.length)

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return (B, T + 1) int64; the last column is only predicted and is the first column of the next step.

        The order is that of the corpus; `seed` is not used. Raises `DataError` for a corpus too small for a step.
        """
        steps = self.steps(batch)
        if not steps:
            raise _too_small(self.tokens, batch, self.length + 1)
        return self.window(step % steps * self.length, self.length, batch)

    def window(self, position: int, length: int, batch: int) -> Tensor:
        """Return (B, `length` + 1) int64 starting at `position` of every stream; steps may differ in length."""
        each = len(self.tokens.ids) // batch
        begins = range(position, position + batch * each, each)
        rows = [self.tokens.ids[begin : begin + length + 1] for begin in begins]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    def begins(self, step: int, batch: int) -> bool:
        """Return whether this step begins an epoch, where the carried state must be reset."""
        return step % max(1, self.steps(batch)) == 0


def _too_small(tokens: SplitTokens, batch: int, row: int) -> DataError:
    return DataError(
        "the corpus is smaller than one batch",
        got=f"{len(tokens.ids):,} tokens in {tokens.documents:,} documents",
        expected=f"at least {batch * row:,}: {batch:,} rows of {row:,}",
        do="give more text, smaller batches or shorter rows",
    )


def shuffled(places: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Map `places` (N,) by a permutation of range(count) drawn from `seed`, without an array of size `count`.

    A Feistel network over the next power of four, iterated until the result is below `count` (cycle walking, Black &
    Rogaway 2002, "Ciphers with arbitrary finite domains").
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    low = (np.uint64(1) << half) - np.uint64(1)
    keys = [np.uint64(derive(seed, f"turn {turn}")) for turn in range(ROUNDS)]
    out = places.astype(np.uint64)
    walking = np.ones(len(out), bool)
    while walking.any():
        left, right = out[walking] >> half, out[walking] & low
        for key in keys:
            left, right = right, left ^ (_splitmix(right ^ key) & low)
        out[walking] = left << half | right
        walking = out >= np.uint64(count)
    return out.astype(np.int64)


def _splitmix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of splitmix64 (Steele et al. 2014): every output bit depends on every input bit."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)
