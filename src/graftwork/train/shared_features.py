"""Pooled features of a frozen backbone for examples that many runs predict, computed once for all probes.

The batches are those that a probe alone would use, so every probe's logits are the same as alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.example import Example
from graftwork.core.hidden_states import BatchStates
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import Logits
from graftwork.machine.memory import Rows, count_answers, in_halves
from graftwork.train.answer import frozen_states
from graftwork.train.answer_order import batches, in_example_order
from graftwork.train.probe import Probe

MOST_BYTES = 1 << 30  # of features kept in memory; above that, every run computes its own


class PooledOnce:
    """Pooled features of these examples after every block, computed by the first run that reads them and kept."""

    def __init__(self, backbone: Backbone, examples: Sequence[Example]):
        self.backbone, self.examples = backbone, examples
        self._encoded: Encoded | None = None
        self._batches: list[_Batch] = []
        self._parted = 0  # batches that were run in parts for lack of memory
        self._cost = Phase()

    def serves(self, backbone: Backbone, examples: Sequence[Example]) -> bool:
        """Return whether these are its examples and backbone, and the features fit `MOST_BYTES`."""
        return backbone is self.backbone and examples is self.examples and self._bytes <= MOST_BYTES

    def logits(self, probe: Probe) -> tuple[Logits, Phase]:
        """Return what `probe.logits` would, and the cost of the features if an earlier run computed them."""
        charged = self._cost if self._encoded is not None else Phase()
        encoded = self._encoded or self._compute()
        count_answers(self._parted)
        with torch.inference_mode():
            parts = [probe.read(batch).double().cpu().numpy() for batch in self._batches]
        numbers = np.concatenate(batches(encoded))
        return in_example_order(probe.facts, encoded, np.concatenate(parts), numbers), charged

    @property
    def _bytes(self) -> int:
        """A lower bound on the features' size: one sequence per example."""
        return 4 * len(self.examples) * sum(self.backbone.card.read_widths(False))

    @torch.inference_mode()
    def _compute(self) -> Encoded:
        watch = Stopwatch()
        encoded, blocks = self.backbone.encode(self.examples), self.backbone.card.blocks

        def read(rows: Rows) -> _Batch:
            inputs = self.backbone.collate(encoded, encoded.sequences(rows))
            states = frozen_states(self.backbone, inputs, blocks, encoded.towers)
            seen = BatchStates(self.backbone, inputs, states, encoded.towers)
            return _Batch([seen.joined(block) for block in range(blocks + 1)])

        found = [in_halves(rows.tolist(), read) for rows in batches(encoded)]
        self._parted = sum(len(parts) > 1 for parts in found)
        self._batches, self._cost = [batch for parts in found for batch in parts], watch.read()
        self._encoded = encoded  # set last: a failed pass leaves nothing
        return encoded


class _Batch:
    """The features of one batch. Implements `PooledFeatures`."""

    def __init__(self, joined: Sequence[Tensor]):
        self._joined = joined

    def joined(self, block: int) -> Tensor:
        """Return the features (B, P), or (W, P) of words."""
        return self._joined[block]
