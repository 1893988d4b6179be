"""What a frozen backbone gives for examples that many runs answer, computed once for all probes.

The batches are those in which a probe answers alone, so every probe's logits are what it gives alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from graftwork.core.backbone import Backbone, Encoded
from graftwork.core.example import Example
from graftwork.core.hidden_states import Seen
from graftwork.core.meter import Phase, Stopwatch
from graftwork.core.method import Logits
from graftwork.machine.memory import Rows, count_answers, in_halves
from graftwork.train.answer import batches, finished, frozen_states
from graftwork.train.probe import Probe

MOST_BYTES = 1 << 30  # of features kept in memory; with more, every run computes its own


class PooledOnce:
    """The pooled features of these examples after every block, kept from the first run that reads them."""

    def __init__(self, backbone: Backbone, examples: Sequence[Example]):
        self.backbone, self.examples = backbone, examples
        self._encoded: Encoded | None = None
        self._batches: list[_Batch] = []
        self._parted = 0  # batches that were read in parts, for want of memory
        self._cost = Phase()

    def serves(self, backbone: Backbone, examples: Sequence[Example]) -> bool:
        """Whether these are its examples, read by its backbone, and few enough."""
        return backbone is self.backbone and examples is self.examples and self._bytes <= MOST_BYTES

    def logits(self, probe: Probe) -> tuple[Logits, Phase]:
        """What `probe.logits` gives, and what an earlier run has paid for it."""
        charged = self._cost if self._encoded is not None else Phase()
        encoded = self._encoded or self._compute()
        count_answers(self._parted)
        with torch.inference_mode():
            parts = [probe.read(batch).double().cpu().numpy() for batch in self._batches]
        numbers = np.concatenate(batches(encoded))
        return finished(probe.facts, encoded, np.concatenate(parts), numbers), charged

    @property
    def _bytes(self) -> int:
        """Of the features, at least: of examples that are read once."""
        return 4 * len(self.examples) * sum(self.backbone.card.read_widths(False))

    @torch.inference_mode()
    def _compute(self) -> Encoded:
        watch = Stopwatch()
        encoded, blocks = self.backbone.encode(self.examples), self.backbone.card.blocks

        def read(rows: Rows) -> _Batch:
            inputs = self.backbone.collate(encoded, encoded.sequences(rows))
            states = frozen_states(self.backbone, inputs, blocks, encoded.towers)
            seen = Seen(self.backbone, inputs, states, encoded.towers)
            return _Batch([seen.joined(block) for block in range(blocks + 1)])

        found = [in_halves(rows.tolist(), read) for rows in batches(encoded)]
        self._parted = sum(len(parts) > 1 for parts in found)
        self._batches, self._cost = [batch for parts in found for batch in parts], watch.read()
        self._encoded = encoded  # last: a pass that failed leaves nothing
        return encoded


class _Batch:
    """`Pooled`, kept."""

    def __init__(self, joined: Sequence[Tensor]):
        self._joined = joined

    def joined(self, block: int) -> Tensor:
        """(B, P), or (W, P) of words."""
        return self._joined[block]
