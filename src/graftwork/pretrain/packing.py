"""Rows of equal length out of the ids of a corpus: which ones a step gets is a pure function of seed and step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.errors import DataError
from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.train.seeds import derive

ROUNDS = 6  # of the Feistel network; from four on it is a pseudo-random permutation


@dataclass(frozen=True)
class PackedRows:
    """Rows of `length` ids, cut from the ids of all documents end to end: a row may end one document and begin another.

    With `start` a row's first id is `start`, with `end` its last is `end`; both are counted in `length`.
    """

    tokens: SplitTokens
    length: int  # T
    start: int | None = None
    end: int | None = None

    @property
    def content(self) -> int:
        """Ids of a row that come from the corpus."""
        return self.length - (self.start is not None) - (self.end is not None)

    def __len__(self) -> int:
        """Rows of an epoch; what is left at the end of the corpus, shorter than a row, is not seen."""
        return len(self.tokens.ids) // self.content

    def steps(self, batch: int) -> int:
        """Whole batches of an epoch."""
        return len(self) // batch

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """(B, T) int64 rows of step number `step`, which is counted from 0 on.

        Every row comes once per epoch, in an order that `seed` and the epoch decide; a batch may end one epoch and
        begin the next. Raises `DataError` for a corpus with fewer rows than a batch.
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
        """(B, T) int64 rows by their numbers in the corpus: what validation reads."""
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
    """The ids cut into as many streams as a batch has rows, read side by side in the order of the corpus.

    A step goes on where the one before it ended, so that a network can carry its state from step to step.
    """

    tokens: SplitTokens
    length: int  # T, ids that a step moves on by

    @property
    def content(self) -> int:
        """Ids of a row that are predicted: every one of the corpus comes once."""
        return self.length

    def __len__(self) -> int:
        """Rows of an epoch, about: a batch of so many, or of fewer, has a step."""
        return len(self.tokens.ids) // (self.length + 1)

    def steps(self, batch: int) -> int:
        """Whole steps of an epoch; what is left at the end of each stream is not seen."""
        return max(0, (len(self.tokens.ids) // batch - 1) // self.length)

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """(B, T + 1) int64: the last column is the first of the next step, there to be predicted only.

        The order is that of the corpus: `seed` decides nothing. Raises `DataError` for a corpus too small for a step.
        """
        steps = self.steps(batch)
        if not steps:
            raise _too_small(self.tokens, batch, self.length + 1)
        return self.window(step % steps * self.length, self.length, batch)

    def window(self, position: int, length: int, batch: int) -> Tensor:
        """(B, `length` + 1) int64 from `position` of every stream on: for steps that differ in length."""
        each = len(self.tokens.ids) // batch
        begins = range(position, position + batch * each, each)
        rows = [self.tokens.ids[begin : begin + length + 1] for begin in begins]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    def begins(self, step: int, batch: int) -> bool:
        """Whether this step begins an epoch: a carried state belongs to other text."""
        return step % max(1, self.steps(batch)) == 0


def _too_small(tokens: SplitTokens, batch: int, row: int) -> DataError:
    return DataError(
        "the corpus is smaller than one batch",
        got=f"{len(tokens.ids):,} tokens in {tokens.documents:,} documents",
        expected=f"at least {batch * row:,}: {batch:,} rows of {row:,}",
        do="give more text, smaller batches or shorter rows",
    )


def shuffled(places: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Where a permutation of range(count), drawn by `seed`, sends `places` (N,); nothing of size `count` is held.

    A Feistel network over the next power of four, walked until it lands below `count` (Black & Rogaway 2002,
    "Ciphers with arbitrary finite domains").
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    low = (np.uint64(1) << half) - np.uint64(1)
    keys = [np.uint64(derive(seed, f"turn {turn}")) for turn in range(ROUNDS)]
    out = places.astype(np.uint64)
    walking = np.ones(len(out), bool)
    while walking.any():
        left, right = out[walking] >> half, out[walking] & low
        for key in keys:
            left, right = right, left ^ (_mixed(right ^ key) & low)
        out[walking] = left << half | right
        walking = out >= np.uint64(count)
    return out.astype(np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele et al. 2014): every bit of a result depends on every bit given."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)
