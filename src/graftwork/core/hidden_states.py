"""The hidden states of one batch in a frozen backbone, and their pooled features, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from torch import Tensor

from graftwork.core.backbone import Backbone, Inputs
from graftwork.core.model import join_towers

Rows = slice | list[int]  # indices of sequences in a batch


class BatchStates:
    """A batch: its inputs, each (S, T), and its states (S, T, D) at depths 0, 1, … up to the deepest one needed.

    The inputs have "words" if features are pooled per word.
    """

    def __init__(self, backbone: Backbone, inputs: Inputs, states: Sequence[Tensor], towers: int):
        self.backbone, self.inputs, self.towers = backbone, inputs, towers
        self._states = states
        self._read: dict[tuple[int, bool, int], Tensor] = {}  # key: (block, per word, towers; 0: not joined)

    @cached_property
    def mask(self) -> Tensor:
        """(S, T) bool, True at a real token."""
        return self.inputs["attention_mask"].bool()

    def state(self, depth: int) -> Tensor:
        """Return (S, T, D), the input of block `depth`; depth L is the network's output."""
        return self._states[depth]

    def joined(self, block: int) -> Tensor:
        """Return the pooled features after `block` blocks, towers joined: (B, P) fp32, or (W, P) for words."""
        return self.read(block, "words" in self.inputs, self.towers)

    def read(self, block: int, words: bool, towers: int) -> Tensor:
        """Return features pooled per sequence (S, R), or per word (W, D); joined if `towers` is above 0."""
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
        """(S + 1,) number of words before each sequence, and in total."""
        return [0, *self.inputs["words"].sum(dim=1).cumsum(dim=0).tolist()]

    def part(self, rows: Rows, towers: int, words: bool) -> BatchPart:
        """Return some of the sequences, with features pooled per word if `words`."""
        return BatchPart(self, rows, towers, words)


class BatchPart:
    """Some sequences of a batch. Their features are computed together with those of the whole batch."""

    def __init__(self, whole: BatchStates, rows: Rows, towers: int, words: bool):
        self.whole, self.rows, self.towers, self.words = whole, rows, towers, words

    @cached_property
    def inputs(self) -> Inputs:
        """The batch's inputs for these sequences."""
        given = self.whole.inputs.items()
        return {name: tensor[self.rows] for name, tensor in given if self.words or name != "words"}

    @property
    def mask(self) -> Tensor:
        """(S, T) bool, the mask of these sequences."""
        return self.whole.mask[self.rows]

    def state(self, depth: int) -> Tensor:
        """Return (S, T, D), as `BatchStates.state`."""
        return self.whole.state(depth)[self.rows]

    def joined(self, block: int) -> Tensor:
        """Return (B, P), or (W, P) for words, as `BatchStates.joined`."""
        if self.towers == 1:
            return self.whole.read(block, self.words, 1)[self._words if self.words else self.rows]
        return join_towers(self.whole.read(block, False, 0)[self.rows], self.towers)  # pairs are adjacent only here

    @property
    def _words(self) -> Rows:
        """Indices of this part's words among those of the batch."""
        ends = self.whole.ends
        if isinstance(self.rows, slice):
            return slice(ends[self.rows.start], ends[self.rows.stop])
        return [word for row in self.rows for word in range(ends[row], ends[row + 1])]
