"""Seen: one batch as a frozen backbone saw it. What heads and probes read of it is computed once for all that ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from torch import Tensor

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.model import join_towers

Rows = slice | list[int]  # of the sequences of a batch


class Seen:
    """A batch: its inputs, each (S, T), and its states (S, T, D) at depth 0, 1, … as far as anybody reads them.

    There are "words" among the inputs where it is read word by word.
    """

    def __init__(self, backbone: Backbone, inputs: Inputs, states: Sequence[Tensor], towers: int):
        self.backbone, self.inputs, self.towers = backbone, inputs, towers
        self._states = states
        self._read: dict[tuple[int, bool, int], Tensor] = {}  # (block, word by word, towers; 0: not joined)

    @cached_property
    def mask(self) -> Tensor:
        """(S, T) bool, True at a real token."""
        return self.inputs["attention_mask"].bool()

    def state(self, depth: int) -> Tensor:
        """(S, T, D), what enters block `depth`; after the last block the network's output."""
        return self._states[depth]

    def joined(self, block: int) -> Tensor:
        """(B, P) fp32 after `block` blocks, the towers joined, or (W, P) of words."""
        return self.read(block, "words" in self.inputs, self.towers)

    def read(self, block: int, words: bool, towers: int) -> Tensor:
        """(S, R), or (W, D) word by word; with `towers` above 0 joined."""
        key = (block, words, towers)
        if key not in self._read:
            marks = self.inputs["words"] if words else None
            self._read[key] = (
                join_towers(self.read(block, words, 0), towers)
                if towers
                else self.backbone.pool(self._states[block], self.mask, marks).float()
            )
        return self._read[key]

    @cached_property
    def ends(self) -> list[int]:
        """(S + 1,) how many words there are before each sequence."""
        return [0, *self.inputs["words"].sum(dim=1).cumsum(dim=0).tolist()]

    def part(self, rows: Rows, towers: int, words: bool) -> BatchPart:
        """Some of its sequences, read word by word or not."""
        return BatchPart(self, rows, towers, words)


class BatchPart:
    """Some sequences of a batch. What is read of them is computed with that of the others."""

    def __init__(self, whole: Seen, rows: Rows, towers: int, words: bool):
        self.whole, self.rows, self.towers, self.words = whole, rows, towers, words

    @cached_property
    def inputs(self) -> Inputs:
        """As those of a batch."""
        given = self.whole.inputs.items()
        return {name: tensor[self.rows] for name, tensor in given if self.words or name != "words"}

    @property
    def mask(self) -> Tensor:
        """(S, T)."""
        return self.whole.mask[self.rows]

    def state(self, depth: int) -> Tensor:
        """(S, T, D)."""
        return self.whole.state(depth)[self.rows]

    def joined(self, block: int) -> Tensor:
        """(B, P), or (W, P)."""
        if self.towers == 1:
            return self.whole.read(block, self.words, 1)[self._words if self.words else self.rows]
        return join_towers(self.whole.read(block, False, 0)[self.rows], self.towers)  # side by side here, not in all

    @property
    def _words(self) -> Rows:
        """Which words of the batch its own are."""
        ends = self.whole.ends
        if isinstance(self.rows, slice):
            return slice(ends[self.rows.start], ends[self.rows.stop])
        return [word for row in self.rows for word in range(ends[row], ends[row + 1])]
