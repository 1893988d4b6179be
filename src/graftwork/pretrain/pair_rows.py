"""Pairs of texts, batched by tokens: pairs of near-equal lengths together, as many as fit into a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.pretrain.corpus_tokens import SplitTokens
from graftwork.pretrain.packing import shuffled
from graftwork.train.seeds import derive

TYPICAL = 8  # most steps that represent an epoch in an estimate of its cost


@dataclass(frozen=True)
class PairRows:
    """The pairs of a split whose documents are source and target in turn. Implements `VariedRows`.

    Pairs with a side of more than `length` ids, end token included, are left out. In every epoch the pairs are sorted
    by length, ties in random order, and cut into steps whose sources, and whose targets, have at most
    `batch` x `length` positions, padding included; the steps are then shuffled.
    """

    tokens: SplitTokens
    length: int  # T
    pad: int
    _plans: dict[int, NDArray[np.int64]] = field(default_factory=dict, compare=False, repr=False)  # batch -> cuts
    _orders: dict[int, NDArray[np.int64]] = field(default_factory=dict, compare=False, repr=False)  # seed -> order

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """(N, 3): source length, target length and index of every pair that is short enough, sorted by length."""
        sizes = np.diff(np.asarray(self.tokens.starts)).reshape(-1, 2)
        found = np.column_stack([sizes, np.arange(len(sizes))])[(sizes <= self.length).all(axis=1)]
        return found[np.lexsort((found[:, 0], found[:, 1]))]

    @property
    def content(self) -> int:
        """The mean number of ids of a pair, both sides together."""
        return round(float(self._sizes[:, :2].sum()) / max(1, len(self)))

    @property
    def left_out(self) -> int:
        """The number of pairs that are too long."""
        return self.tokens.documents // 2 - len(self)

    def __len__(self) -> int:
        """The number of pairs of an epoch."""
        return len(self._sizes)

    def steps(self, batch: int) -> int:
        """Return the number of steps of an epoch."""
        return len(self._cuts(batch)) - 1

    def ids(self, batch: int) -> float:
        """Return the mean number of corpus ids per step; those of pairs that are left out count too."""
        return len(self.tokens.ids) / self.steps(batch)

    def typical(self, seed: int, batch: int) -> list[int]:
        """Return the numbers of steps from the shortest pairs to the longest; their mean cost is about that of all."""
        count = self.steps(batch)
        wanted = sorted({int((part + 0.5) * count / TYPICAL) for part in range(TYPICAL)})
        places = np.argsort(shuffled(np.arange(count), count, derive(seed, "steps 0")))
        return [int(places[number]) for number in wanted]

    def rows(self, seed: int, step: int, batch: int) -> Tensor:
        """Return the pairs of a step, (B, 2, W) int64 padded: sources and targets; at least one pair."""
        epoch, place = divmod(step, self.steps(batch))
        number = int(shuffled(np.array([place]), self.steps(batch), derive(seed, f"steps {epoch}"))[0])
        cuts = self._cuts(batch)
        chosen = self._order(derive(seed, f"pairs {epoch}"))[cuts[number] : cuts[number + 1]]
        sides = [[self.tokens.document(2 * pair + side) for side in (0, 1)] for pair in chosen]
        width = max(len(side) for pair in sides for side in pair)
        out = np.full((len(sides), 2, width), self.pad, np.int64)
        for row, pair in enumerate(sides):
            for side, ids in enumerate(pair):
                out[row, side, : len(ids)] = ids
        return torch.from_numpy(out)

    def _cuts(self, batch: int) -> NDArray[np.int64]:
        """Return the place of each step's first pair in sorted order, then the number of pairs; equal in all epochs."""
        if batch not in self._plans:
            cuts, room = [0], batch * self.length
            widest = 0
            for place, width in enumerate(self._sizes[:, :2].max(axis=1).tolist()):
                widest = max(widest, width)
                if (place + 1 - cuts[-1]) * widest > room:
                    cuts.append(place)
                    widest = width
            self._plans[batch] = np.array([*cuts, len(self)], np.int64)
        return self._plans[batch]

    def _order(self, seed: int) -> NDArray[np.int64]:
        """Return the indices of the pairs, sorted by length, ties in an order drawn from `seed`."""
        if seed not in self._orders:
            self._orders.clear()
            drawn = np.random.default_rng(seed).random(len(self))
            order = np.lexsort((drawn, self._sizes[:, 0], self._sizes[:, 1]))
            self._orders[seed] = self._sizes[order, 2]
        return self._orders[seed]
