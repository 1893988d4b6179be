"""One pass of the frozen backbone over a split: pooled features of every block, and the states entering one block.

What is frozen is computed once, in eval mode, and shared by epochs, seeds, methods and learning rates.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.meter import Stopwatch
from graftwork.core.method import Tally, Workbench
from graftwork.core.model import join_towers
from graftwork.core.task import Split
from graftwork.train.flops import StepCounter

Batches = Callable[[NDArray[np.int64], int], list[NDArray[np.int64]]]  # (lengths, tokens a batch) -> row numbers
TOKENS_PER_BATCH = 4096  # padded; bounds the memory of a pass and keeps matrix products large


class Pass:
    """Hidden states of one split, computed once. Implements `FrozenPass`."""

    def __init__(self, backbone: Backbone, split: Split, depth: int | None, batches: Batches):
        watch = Stopwatch()
        self.encoded = encoded = backbone.encode(split.examples)
        self.tally = Tally()
        self._depth = depth
        lengths = np.array([len(ids) for ids in encoded.ids], dtype=np.int64)
        card = backbone.card
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self._pooled = torch.empty(card.blocks + 1, len(lengths), card.width)  # (L + 1, S, D)
        kind = next(backbone.module.parameters()).dtype
        self._states = None if depth is None else torch.empty(int(self._offsets[-1]), card.width, dtype=kind)
        counter = StepCounter(self.tally)
        for rows in batches(lengths, TOKENS_PER_BATCH):
            self._take(backbone, encoded, rows.tolist(), counter)
        self.cost = watch.read()

    @torch.no_grad()
    def _take(self, backbone: Backbone, encoded: Encoded, rows: list[int], counter: StepCounter) -> None:
        inputs = backbone.collate(encoded, rows)
        mask = inputs["attention_mask"].bool()  # (S, T)
        states = counter.run(mask, lambda: backbone.states(inputs))
        for block, hidden in enumerate(states):
            self._pooled[block, rows] = backbone.pool(hidden, mask).float()
        if self._states is not None and self._depth is not None:
            for row, hidden, real in zip(rows, states[self._depth], mask, strict=True):
                self._states[self._offsets[row] : self._offsets[row + 1]] = hidden[real]

    @property
    def bytes(self) -> int:
        """Memory held."""
        held = [self._pooled] + ([self._states] if self._states is not None else [])
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def pooled(self, block: int) -> Tensor:
        """(N, P) fp32 after `block` blocks."""
        return join_towers(self._pooled[block], self.encoded.towers)

    def entering(self, sequences: Sequence[int], mask: Tensor) -> Tensor:
        """(S, T, D) laid out as `mask` (S, T) says, whichever side the padding is on; zero at padding."""
        assert self._states is not None, "no depth was asked for"
        batch = self._states.new_zeros(*mask.shape, self._states.shape[1])
        batch[mask] = torch.cat([self._states[self._offsets[row] : self._offsets[row + 1]] for row in sequences])
        return batch


class FrozenStore:
    """The passes of one process, least recently used ones dropped above `cap_bytes`."""

    def __init__(self, batches: Batches, cap_bytes: int = 4 << 30):
        self.batches, self.cap_bytes = batches, cap_bytes
        self._passes: OrderedDict[tuple[str, str, str, int | None], Pass] = OrderedDict()

    def get(self, backbone: Backbone, data: str, split: Split, depth: int | None, bench: Workbench) -> Pass:
        """The pass over `split` of the data set `data` (its digest); with `depth`, the states entering that block too.

        Work done earlier is charged to `bench` in full: a price tag says what a run would cost alone.
        """
        key = (backbone.card.revision, data, split.name, depth)
        if depth is None:  # a pass that kept states has the pooled features as well
            key = next((other for other in self._passes if other[:3] == key[:3]), key)
        known = self._passes.get(key)
        if known is None:
            known = self._passes[key] = Pass(backbone, split, depth, self.batches)
        else:
            bench.charged.add(known.cost)
        bench.tally.add(known.tally.flops, known.tally.padding_flops / max(known.tally.flops, 1.0))
        self._passes.move_to_end(key)
        while len(self._passes) > 1 and sum(p.bytes for p in self._passes.values()) > self.cap_bytes:
            self._passes.popitem(last=False)
        return known

    def holds(self, revision: str, data: str, split: str, depth: int | None) -> bool:
        """Whether `get` would compute nothing for this backbone (its revision), data set, split and depth."""
        return any(key[:3] == (revision, data, split) and depth in (None, key[3]) for key in self._passes)
